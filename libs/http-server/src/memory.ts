import { totalmem } from 'node:os';

/** The bytes that this process may use: those of its container, or of the machine. */
export const memoryBytes = (): number => Math.min(process.constrainedMemory() || Infinity, totalmem());
