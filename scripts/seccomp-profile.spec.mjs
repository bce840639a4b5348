import { describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { additions, runtimeProfile } from './seccomp-profile.mjs';

const profile = JSON.parse(readFileSync(new URL('../docker/seccomp-runtime.json', import.meta.url), 'utf8'));

/** SHA-256 of seccomp/default.json of github.com/moby/profiles v0.2.3 as JSON without white space. */
const DOCKER_DEFAULT = 'afb4934b023cfceaaec1a9d752ca3f801aaa96eb2e59abe6e7ea16976948e080';

describe("docker/seccomp-runtime.json, the seccomp profile of the runtime's container", () => {
  const dockerDefault = { ...profile, syscalls: profile.syscalls.slice(0, -additions.length) };

  it("is Docker's default profile with a few more system calls", () => {
    expect(createHash('sha256').update(JSON.stringify(dockerDefault)).digest('hex')).toBe(DOCKER_DEFAULT);
    expect(runtimeProfile(dockerDefault)).toEqual(profile);
  });

  it('adds only what bubblewrap needs', () => {
    expect(additions.flatMap(({ names }) => names)).toEqual(['clone', 'mount', 'umount2', 'pivot_root', 'sethostname']);
  });
});
