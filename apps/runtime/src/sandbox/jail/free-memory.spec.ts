import { expect, it } from '@jest/globals';
import { freeMemoryMb } from './free-memory.js';

const MB = 1024 * 1024;
const machine = { '/proc/meminfo': 'MemTotal:       8388608 kB\nMemAvailable:    4194304 kB\n' };
const version2 = (max: string, current: number, stat = '') => ({
  '/sys/fs/cgroup/memory.max': `${max}\n`,
  '/sys/fs/cgroup/memory.current': `${current}\n`,
  '/sys/fs/cgroup/memory.stat': stat,
});

it.each<[string, Record<string, string>, number]>([
  ['a machine without a limit', machine, 4096],
  ['a system that does not show it', {}, Infinity],
  ['a container without a limit', { ...machine, ...version2('max', 900 * MB) }, 4096],
  ['a container with a limit', { ...machine, ...version2(String(2048 * MB), 1500 * MB) }, 548],
  [
    'a container that has read files',
    { ...machine, ...version2(String(2048 * MB), 2000 * MB, `anon 1\ninactive_file ${300 * MB}\nactive_file ${200 * MB}\nshmem 5\n`) },
    548,
  ],
  [
    'a container in which the names of many files were looked up',
    {
      ...machine,
      ...version2(String(2048 * MB), 2000 * MB, `slab ${450 * MB}\nslab_reclaimable ${400 * MB}\nslab_unreclaimable ${50 * MB}\n`),
    },
    448,
  ],
  [
    'a container with a limit on a machine with less',
    { '/proc/meminfo': 'MemAvailable: 102400 kB\n', ...version2(String(2048 * MB), 0) },
    100,
  ],
  [
    'a container of cgroup v1',
    {
      ...machine,
      '/sys/fs/cgroup/memory/memory.limit_in_bytes': `${1024 * MB}\n`,
      '/sys/fs/cgroup/memory/memory.usage_in_bytes': `${1000 * MB}\n`,
      '/sys/fs/cgroup/memory/memory.stat': `inactive_file ${100 * MB}\n`,
    },
    124,
  ],
])('the free memory of %s is known', (_, files, expected) => {
  expect(freeMemoryMb((file) => files[file] ?? null)).toBe(expected);
});
