/** Why a process cannot start or go on, in one line that names the cause and the remedy. It is logged without a stack. */
export class CannotStart extends Error {
  override readonly name = 'CannotStart';
}
