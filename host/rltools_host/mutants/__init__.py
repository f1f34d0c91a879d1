"""Small faults that the tests must notice, and the measure of how many they do."""
