"""The gallery of circuits: bundled ones, the user's own and random ones, with everything that can be done with them."""
