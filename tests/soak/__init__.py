"""Random faults for as long as there is time."""
