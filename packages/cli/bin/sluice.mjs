#!/usr/bin/env node
// In a clone of the repository: the launcher, which builds what has changed. In the package: the command line itself.
import { existsSync } from 'node:fs';

const launcher = new URL('../../../scripts/sluice.mjs', import.meta.url);
await import(existsSync(launcher) ? launcher.href : '../dist/sluice.mjs');
