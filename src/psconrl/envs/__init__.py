"""Environments: functions that build a CMDP, and the registry that names them."""
