import { findProgram } from './find-program.js';

/**
 * Where the machine is short of CPU, components get a third of what the services get: a hostile one that burns all it may should not be felt in
 * deliveries. While nobody else wants the CPU it makes no difference.
 */
export function lowerPriority(): string[] {
  const nice = findProgram('nice');
  return nice ? [nice, '-n', '5'] : [];
}
