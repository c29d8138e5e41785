"""The occupancy linear program on HiGHS, for one end component and for several."""
