import { readKernelFile } from './process-usage.js';

/** The files of the memory controller, as a container sees them. */
const CONTROLLERS = [
  { folder: '/sys/fs/cgroup', limit: 'memory.max', used: 'memory.current' },
  { folder: '/sys/fs/cgroup/memory', limit: 'memory.limit_in_bytes', used: 'memory.usage_in_bytes' },
];
const MB = 1024 * 1024;

type Read = typeof readKernelFile;

/** The memory in MB that this machine or container can still use before it ends processes; Infinity if that is not known. */
export function freeMemoryMb(read: Read = readKernelFile): number {
  const ofMachine = Number(/^MemAvailable: +(\d+) kB$/m.exec(read('/proc/meminfo') ?? '')?.[1] ?? Infinity) / 1024;
  return Math.min(ofMachine, ...CONTROLLERS.map((each) => freeOf(each, read)));
}

/**
 * Cached files and what the kernel remembers of names do not count as used: they give way. Code can make the kernel remember any number of names that do
 * not exist. Version 1 of the controller does not report how much that is.
 */
function freeOf({ folder, limit, used }: (typeof CONTROLLERS)[number], read: Read): number {
  const [most, now] = [limit, used].map((file) => Number(read(`${folder}/${file}`) ?? NaN));
  // `max` stands for no limit
  if (most === undefined || now === undefined || Number.isNaN(most - now)) return Infinity;
  const stat = read(`${folder}/memory.stat`) ?? '';
  const givesWay = [...stat.matchAll(/^(?:active_file|inactive_file|slab_reclaimable) (\d+)$/gm)];
  return (most - now + givesWay.reduce((sum, [, bytes]) => sum + Number(bytes), 0)) / MB;
}
