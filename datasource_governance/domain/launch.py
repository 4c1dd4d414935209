"""A run as it was launched: what somebody signs who starts one, and what that may prove later.

Dagster lets whoever reaches it start a run and give it any tag, so a run's launcher is known by an
attestation over exactly these facts. The names of the jobs are here, because the facts are held
against them wherever a launch is verified.

Source: SPEC sections 6 ("a run takes its creator from a stored attestation"), 7 and 15.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from datasource_governance.domain.canonical import Sha256, document_digest

RETENTION_APPLY_JOB = "apply_retention_plan"
"""Name of the job that applies a retention plan, of whatever datasources."""
CONTRACT_MONITOR_JOB = "monitor_contracts"
"""Name of the job that runs the checks of contracts that are due."""
RETENTION_PLAN_JOB = "retention_plan"
"""Name of the job that makes one."""
RETENTION_PLAN_ASSET = "governance/retention_plan"
"""Key of the asset that the plans are materializations of."""


def stage_job_name(datasource: str) -> str:
    """Return the name of the job that stages a delivery."""
    return f"stage_{datasource}"


def refresh_job_name(datasource: str) -> str:
    """Return the name of the job that reads the origin of a datasource into a stage."""
    return f"refresh_stage_{datasource}"


def promotion_job_name(datasource: str) -> str:
    """Return the name of the job that promotes a stage."""
    return f"promote_{datasource}"


def publication_job_name(datasource: str) -> str:
    """Return the name of the job that publishes an output."""
    return f"publish_{datasource}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLaunch:
    """One run: its id, its job, what of it was selected, and the hash of its configuration.

    `assets` are keys spelled with `/`, sorted, of the assets that were selected, themselves or by a
    check of theirs. Without any, everything of the job runs.
    """

    run_id: str
    job: str
    assets: tuple[str, ...]
    config_hash: Sha256

    def stages(self, datasource: str) -> bool:
        """Tell whether whoever launched it meant to stage a delivery, or what an origin says."""
        jobs = (stage_job_name(datasource), refresh_job_name(datasource))
        return any(self._means(job, f"{datasource}/stage") for job in jobs)

    def promotes(self, datasource: str) -> bool:
        """Tell whether whoever launched it meant to promote a stage of a datasource."""
        return self._means(promotion_job_name(datasource), f"{datasource}/current")

    def publishes(self, datasource: str) -> bool:
        """Tell whether whoever launched it meant to publish an output for a datasource."""
        return self._means(publication_job_name(datasource), f"{datasource}/current")

    def plans_retention(self) -> bool:
        """Tell whether whoever launched it meant to make a retention plan."""
        return self._means(RETENTION_PLAN_JOB, RETENTION_PLAN_ASSET)

    def applies_retention(self) -> bool:
        """Tell whether whoever launched it meant to apply a retention plan."""
        return self.job == RETENTION_APPLY_JOB

    def _means(self, job: str, asset: str) -> bool:
        return asset in self.assets if self.assets else job == self.job


def _as_it_is(_key: object, value: object) -> object:
    return value


def reads_environment(
    config: object, spelled_out: Callable[[object, object], object] = _as_it_is
) -> bool:
    """Tell whether `{"env": …}` stands anywhere in a JSON value.

    Dagster would replace it with a variable of the process that runs it. `spelled_out` says what
    stands under a key, for values that are texts of such values.
    """
    waiting, seen = [config], set[int]()
    while waiting:
        part = waiting.pop()
        # YAML can hold a part many times over, even within itself.
        if id(part) in seen or not isinstance(part, Mapping | list | tuple):
            continue
        seen.add(id(part))
        if not isinstance(part, Mapping):
            waiting.extend(part)
        elif set(part) == {"env"}:
            return True
        else:
            waiting.extend(map(spelled_out, part, part.values()))
    return False


def run_config_hash(config: object) -> Sha256:
    """Return the hash of a run's configuration.

    Raises:
        ValueError: when it has no canonical JSON form.
    """
    return document_digest("datasource_governance/run_config/v1", config)
