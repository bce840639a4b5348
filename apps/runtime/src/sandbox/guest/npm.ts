import { createRequire } from 'node:module';
import { installEgress } from './egress.js';

// In the jail of an installation: npm itself. Its connections go through the parent's proxy, like those of components; it runs no code of packages.

const [, , npm, egress, folder, ...args] = process.argv as [string, string, string, string, string, ...string[]];
installEgress(egress);
// npm looks for settings in the user's home, and for a project in the working directory
process.env.HOME = folder;
process.chdir(folder);
const program = `${npm}/bin/npm-cli.js`;
process.argv = [process.execPath, program, ...args];
createRequire(program)(program);
