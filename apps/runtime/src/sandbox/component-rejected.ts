import type { PackageImport } from './sandbox.js';

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

/** The component imports packages that have to be installed before it can be loaded. */
export class PackagesMissing extends ComponentRejected {
  constructor(readonly imports: PackageImport[]) {
    super(`The packages ${imports.map(({ specifier }) => `"${specifier}"`).join(', ')} are not installed`);
  }
}
