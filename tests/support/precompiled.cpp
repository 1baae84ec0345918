// Carries the precompiled Catch2 header, which every test executable reuses; catch_main.cpp cannot.
