"""From the paper's curves to the simulator's numbers: `make calibrate`. No part of the installed package."""
