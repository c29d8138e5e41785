"""Agents of other papers, with which this library's are compared."""
