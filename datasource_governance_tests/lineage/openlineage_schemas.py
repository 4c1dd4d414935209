"""The OpenLineage specification 2-0-2 and its facets, restated as strictly as events here are made.

Written anew from the specification's words: what it requires is required, its formats are checked,
and keys that it does not name are refused. Ours is read from the file that is published.
"""

import json
from functools import cache
from importlib.resources import files

from jsonschema import Draft202012Validator, FormatChecker

SPEC = "https://openlineage.io/spec"
TEXT, FLAG, NUMBER = {"type": "string", "minLength": 1}, {"type": "boolean"}, {"type": "integer"}
INSTANT = {"type": "string", "format": "date-time", "pattern": r"T.*(Z|[+-]\d\d:\d\d)$"}
UUID = {"type": "string", "format": "uuid", "pattern": "^[0-9a-f-]{36}$"}


def thing(required, **optional):
    """An object with these keys and no others."""
    return {
        "type": "object",
        "required": [*required],
        "properties": {**required, **optional},
        "additionalProperties": False,
    }


def facet(name, version, required, **optional):
    """A facet, which says who made it and by which schema."""
    url = f"{SPEC}/facets/{version}/{name}.json#/$defs/{name}"
    base = {"_producer": {"type": "string", "format": "uri", "pattern": "^https://"}}
    return thing({**base, "_schemaURL": {"const": url}, **required}, **optional)


def many(item):
    return {"type": "array", "items": item}


ASSERTION = thing(
    {"assertion": TEXT, "success": FLAG},
    column=TEXT,
    severity={"enum": ["error", "warn"]},
    name=TEXT,
    expected=TEXT,
    actual={"type": "string", "pattern": "^[0-9]+$"},
    params={"const": {}},
)
JOB = thing({"namespace": TEXT, "name": TEXT}, facets={"const": {}})
PARENT = thing({"runId": UUID}, facets={"const": {}})
RUN_FACETS = thing(
    {},
    parent=facet("ParentRunFacet", "1-2-0", {"run": PARENT, "job": JOB}),
    nominalTime=facet("NominalTimeRunFacet", "1-0-1", {"nominalStartTime": INSTANT}),
    errorMessage=facet(
        "ErrorMessageRunFacet", "1-0-1", {"message": TEXT, "programmingLanguage": TEXT}
    ),
    contractViolation={"$ref": "#/$defs/ContractViolationRunFacet"},
)
DATASET_FACETS = thing(
    {},
    schema=facet(
        "SchemaDatasetFacet",
        "1-2-0",
        {"fields": many(thing({"name": TEXT, "type": TEXT}, fields={"const": []}))},
    ),
    version=facet("DatasetVersionDatasetFacet", "1-0-1", {"datasetVersion": TEXT}),
)
INPUT_FACETS = thing(
    {},
    dataQualityAssertions=facet(
        "DataQualityAssertionsDatasetFacet", "1-1-0", {"assertions": many(ASSERTION)}
    ),
    dataQualityMetrics=facet(
        "DataQualityMetricsInputDatasetFacet",
        "1-0-3",
        {"columnMetrics": {"const": {}}, "rowCount": NUMBER},
    ),
)
OUTPUT_FACETS = thing(
    {},
    outputStatistics=facet(
        "OutputStatisticsOutputDatasetFacet", "1-0-2", {"rowCount": NUMBER, "size": NUMBER}
    ),
)
JOB_FACETS = thing(
    {},
    jobType=facet(
        "JobTypeJobFacet",
        "2-0-4",
        {"processingType": {"enum": ["BATCH", "STREAMING"]}, "integration": TEXT, "jobType": TEXT},
    ),
)
RUN_EVENT = thing(
    {
        "eventTime": INSTANT,
        "eventType": {"enum": ["START", "COMPLETE", "FAIL"]},
        "producer": {"type": "string", "format": "uri", "pattern": "^https://"},
        "schemaURL": {"const": f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"},
        "run": thing({"runId": UUID, "facets": RUN_FACETS}),
        "job": thing({"namespace": TEXT, "name": TEXT, "facets": JOB_FACETS}),
        "inputs": many(
            thing(
                {
                    "namespace": TEXT,
                    "name": TEXT,
                    "facets": DATASET_FACETS,
                    "inputFacets": INPUT_FACETS,
                }
            )
        ),
        "outputs": many(
            thing(
                {
                    "namespace": TEXT,
                    "name": TEXT,
                    "facets": DATASET_FACETS,
                    "outputFacets": OUTPUT_FACETS,
                }
            )
        ),
    }
)


@cache
def validator():
    """What every event is held to, the published schema of our own facet included."""
    file = files("datasource_governance.lineage") / "schemas" / "ContractViolationRunFacet.json"
    own = json.loads(file.read_text())
    return Draft202012Validator(RUN_EVENT | {"$defs": own["$defs"]}, format_checker=FormatChecker())


def problems(document):
    """What is wrong with an event, each with its place; nothing of one that is in order."""
    return [
        f"{'/'.join(map(str, one.absolute_path))}: {one.message}"
        for one in validator().iter_errors(document)
    ]
