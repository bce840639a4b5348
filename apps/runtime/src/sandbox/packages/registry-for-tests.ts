import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';

/** The contents of an archive: text, or a link. */
export type ArchiveEntry = string | Buffer | { link: string };

export interface PublishedVersion {
  /** Files of the archive, by path below `package/`, or by an absolute or climbing path as it is */
  files?: Record<string, ArchiveEntry>;
  /** More of its package.json */
  manifest?: Record<string, unknown>;
  /** Where the registry says that the archive is; default: in the registry */
  tarball?: string;
  /** The checksum that the registry states */
  integrity?: string;
}

/** A registry of npm packages on this machine, with the packages of a test. */
export class TestRegistry {
  readonly requests: { path: string; authorization: string | undefined }[] = [];
  private readonly packages = new Map<string, Map<string, { version: PublishedVersion; archive: Buffer }>>();
  private server: Server | undefined;
  url = '';
  /** Whether it leaves requests without a response. */
  isSilent = false;

  publish(name: string, version: string, published: PublishedVersion): void {
    const manifest = { name, version, ...published.manifest };
    const files = { 'package.json': JSON.stringify(manifest), ...published.files };
    const versions = this.packages.get(name) ?? new Map<string, { version: PublishedVersion; archive: Buffer }>();
    versions.set(version, { version: published, archive: archiveOf(files) });
    this.packages.set(name, versions);
  }

  async start(): Promise<void> {
    this.server = createServer((request, response) => {
      const path = decodeURIComponent(request.url ?? '');
      this.requests.push({ path, authorization: request.headers.authorization });
      if (this.isSilent) return;
      const [, name, version] = /^\/((?:@[^/]+\/)?[^/]+)(?:\/-\/(.+)\.tgz)?$/.exec(path) ?? [];
      const versions = this.packages.get(name ?? '');
      if (!versions) return void response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}');
      if (version !== undefined) return void response.end(versions.get(version)?.archive);
      response.setHeader('content-type', 'application/json').end(JSON.stringify(this.describe(name!, versions)));
    });
    await new Promise<void>((resolve) => this.server!.listen(this.url === '' ? 0 : Number(new URL(this.url).port), '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  async stop(): Promise<void> {
    this.server?.closeAllConnections();
    await new Promise((resolve) => (this.server ? this.server.close(resolve) : resolve(undefined)));
  }

  private describe(name: string, versions: Map<string, { version: PublishedVersion; archive: Buffer }>): object {
    return {
      name,
      'dist-tags': { latest: [...versions.keys()].at(-1) },
      versions: Object.fromEntries(
        [...versions].map(([version, { version: published, archive }]) => [
          version,
          {
            name,
            version,
            ...published.manifest,
            dist: {
              tarball: published.tarball ?? `${this.url}${name}/-/${version}.tgz`,
              integrity: published.integrity ?? `sha512-${createHash('sha512').update(archive).digest('base64')}`,
            },
            ...((published.manifest?.scripts as Record<string, string> | undefined)?.postinstall && { hasInstallScript: true }),
          },
        ]),
      ),
    };
  }
}

const block = 512;

/** A gzipped tar archive. Paths that begin with `/` or `../` stay as they are. */
export function archiveOf(files: Record<string, ArchiveEntry>): Buffer {
  const pieces: Buffer[] = [];
  for (const [path, entry] of Object.entries(files)) {
    const name = /^(\/|\.\.\/)/.test(path) ? path : `package/${path}`;
    const link = typeof entry === 'object' && 'link' in entry ? entry.link : '';
    const body = link === '' ? Buffer.from(entry as string | Buffer) : Buffer.alloc(0);
    const head = Buffer.alloc(block);
    head.write(name, 0, 100);
    head.write('0000644\0', 100);
    head.write('0000000\0'.repeat(2), 108);
    head.write(`${body.length.toString(8).padStart(11, '0')}\0`, 124);
    head.write('00000000000\0', 136);
    head.write('        ', 148);
    head.write(link === '' ? '0' : '2', 156);
    head.write(link, 157, 100);
    head.write('ustar\x0000', 257);
    head.write(
      `${head
        .reduce((sum, byte) => sum + byte, 0)
        .toString(8)
        .padStart(6, '0')}\0 `,
      148,
    );
    pieces.push(head, body, Buffer.alloc((block - (body.length % block)) % block));
  }
  return gzipSync(Buffer.concat([...pieces, Buffer.alloc(2 * block)]));
}
