/** A mistake in a component. The message is written for its author and returned unchanged in a 400. */
export class ComponentRejected extends Error {
  override readonly name = 'ComponentRejected';

  constructor(
    message: string,
    /** The line of the component's code, where there is one */
    readonly line: number | null = null,
  ) {
    super(message);
  }
}
