"""Learning on Ray RLlib: runners on many machines gather, one learner learns, the run is like every other one.

Ray is imported only where a run on it begins; see `machines`.
"""
