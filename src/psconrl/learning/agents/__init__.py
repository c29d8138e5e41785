"""The agents of this library, one per file; those of other papers are in ``learning.rivals``.

Import both from ``psconrl.agents``.
"""
