import { createHash } from 'node:crypto';
import { type Caller, type ComponentCode, type ComponentDescription, PackagesMissing, type Sandbox } from '../sandbox/sandbox.js';

export interface InspectedComponent {
  /** With the packages that it imports, if they had to be installed */
  component: ComponentCode;
  /** The packages as they are stored, if they had to be installed */
  packed?: string;
  description: ComponentDescription;
}

/**
 * Reads a component from its code: what `POST /components` and `sluice component check` do. Packages that the code imports are installed and bundled.
 * @throws ComponentRejected, SandboxUnavailable, TooMuchDownloaded, TooMuchWaiting, CallerGone
 */
export async function inspectComponent(sandbox: Sandbox, code: string, caller: Caller = {}): Promise<InspectedComponent> {
  const component = { hash: createHash('sha256').update(code, 'utf8').digest('hex'), code };
  try {
    return { component, description: await sandbox.inspect(component, { ...caller, installs: true }) };
  } catch (error) {
    if (!(error instanceof PackagesMissing)) throw error;
    const { code: packages, packed, versions, warnings } = await sandbox.bundlePackages(error.imports, caller);
    const complete = { ...component, packages };
    const description = await sandbox.inspect(complete, caller);
    const all = [...(description.warnings ?? []), ...warnings];
    return {
      component: complete,
      ...(packed !== '' && { packed }),
      description: {
        ...description,
        ...(all.length > 0 && { warnings: all }),
        ...(Object.keys(versions).length > 0 && { packages: versions }),
      },
    };
  }
}
