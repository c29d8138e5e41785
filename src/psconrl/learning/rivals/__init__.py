"""Agents of other papers, one per file, with which those of this library are compared. See ``psconrl.agents``."""
