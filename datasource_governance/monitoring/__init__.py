"""Run the checks of contracts on live data, on their rhythm and after each materialization."""
