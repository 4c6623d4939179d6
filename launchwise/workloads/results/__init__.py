"""What is right about a launch: outputs beside expected ones, memory that must stay."""
