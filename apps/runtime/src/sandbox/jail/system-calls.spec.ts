import { describe, expect, it } from '@jest/globals';
import { existsSync, readFileSync } from 'node:fs';
import { systemCalls } from './system-calls.js';

/** Where Debian and others keep the kernel's headers, for this processor and for building programs of another one. */
const headers = {
  x64: ['/usr/include/x86_64-linux-gnu/asm/unistd_64.h', '/usr/x86_64-linux-gnu/include/asm/unistd_64.h'],
  arm64: ['/usr/include/aarch64-linux-gnu/asm/unistd_64.h', '/usr/aarch64-linux-gnu/include/asm/unistd_64.h'],
};

describe('the table of system calls', () => {
  it.each(['x64', 'arm64'] as const)('agrees with the kernel headers for %s, where they are installed', (processor) => {
    const file = headers[processor].find((path) => existsSync(path));
    if (!file) return void process.stderr.write(`\nNOT TESTED: no kernel headers for ${processor} (linux-libc-dev)\n`);
    const defined = [...readFileSync(file, 'utf8').matchAll(/^#define __NR_(\w+)\s+(\d+)/gm)];
    const numbers = new Map(defined.map(([, name, number]) => [name!, Number(number)]));
    const column = processor === 'x64' ? 0 : 1;
    const newest = Math.max(...numbers.values());
    // Older headers lack the newest calls
    const ofTable = Object.entries(systemCalls).filter(([, both]) => (both[column] ?? 0) <= newest);
    expect(ofTable.map(([name, both]) => [name, both[column]])).toEqual(ofTable.map(([name]) => [name, numbers.get(name) ?? null]));
  });

  it('has the same number for every call that was added after Linux 5.0 (they count alike from 424 on)', () => {
    const differing = Object.entries(systemCalls).filter(([, [x64, arm64]]) => (x64 >= 424 || (arm64 ?? 0) >= 424) && x64 !== arm64);
    expect(differing).toEqual([]);
  });

  it.each([0, 1])('has no number twice (column %i)', (column) => {
    const numbers = Object.values(systemCalls).flatMap((both) => both[column] ?? []);
    expect(new Set(numbers).size).toBe(numbers.length);
  });
});
