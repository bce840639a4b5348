-- The hooks that the component has: only these are run. null: unknown, as of what was deployed before; all are asked for.
ALTER TABLE deployment ADD COLUMN hooks text[];
