/** Why a process cannot start or continue, in one line that names the cause and the remedy. Logged without a stack. */
export class CannotStart extends Error {
  override readonly name = 'CannotStart';
}
