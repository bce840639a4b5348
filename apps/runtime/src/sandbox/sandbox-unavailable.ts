/** The sandbox cannot start processes: the fault is ours or the machine's, never the component's, and the work is worth trying again. */
export class SandboxUnavailable extends Error {
  override readonly name = 'SandboxUnavailable';
}
