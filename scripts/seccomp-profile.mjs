// node scripts/seccomp-profile.mjs default.json > docker/seccomp-runtime.json
// Writes the seccomp profile of the runtime's container: Docker's default profile (seccomp/default.json of github.com/moby/profiles, v0.2.3, Apache-2.0)
// and the few system calls that bubblewrap needs to create its namespaces. They come without capabilities: a process without capabilities can use
// them only in its own user namespace.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const CLONE_NEWUSER = 0x10000000;

/** The system calls that the profile allows in addition to Docker's default. */
export const additions = [
  {
    names: ['clone'],
    action: 'SCMP_ACT_ALLOW',
    args: [{ index: 0, value: CLONE_NEWUSER, valueTwo: CLONE_NEWUSER, op: 'SCMP_CMP_MASKED_EQ' }],
    comment: 'Sluice: bubblewrap creates its namespaces together with a user namespace, never without one',
  },
  {
    names: ['mount', 'umount2', 'pivot_root', 'sethostname'],
    action: 'SCMP_ACT_ALLOW',
    comment: "Sluice: bubblewrap builds the jail's root directory and names its host; the kernel allows it in the new namespaces only",
  },
];

/** @param {{ syscalls: object[] }} dockerDefault */
export const runtimeProfile = (dockerDefault) => ({ ...dockerDefault, syscalls: [...dockerDefault.syscalls, ...additions] });

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const file = process.argv[2];
  if (!file) {
    console.error('Usage: node scripts/seccomp-profile.mjs default.json');
    process.exit(2);
  }
  console.log(JSON.stringify(runtimeProfile(JSON.parse(readFileSync(file, 'utf8'))), null, 2));
}
