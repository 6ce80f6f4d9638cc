"""The screens of the app, and what happens on them."""
