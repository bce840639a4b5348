-- The hooks that the component has: only these are run. Of what was deployed before, all are asked for.
ALTER TABLE deployment ADD COLUMN hooks text[] NOT NULL DEFAULT '{deploy,activate,deactivate}';
