/** What the author of a component did wrong, in words for him: shown as it is in a 400. */
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
