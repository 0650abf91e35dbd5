"""Legal variants: implementations that differ where they may. A case that one fails is a defect of the suite."""
