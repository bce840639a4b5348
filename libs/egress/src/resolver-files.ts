import { Resolver } from 'node:dns/promises';
import { readFileSync, statSync } from 'node:fs';
import { isIP, isIPv4 } from 'node:net';

/** Which domains complete a name. */
export interface SearchList {
  domains: readonly string[];
  /** Whether a name without a dot is completed first, and queried as it is only if that fails. */
  singleLabelsFirst: boolean;
}

/** The addresses of names in /etc/hosts. */
export function systemHosts(path = '/etc/hosts'): (name: string) => readonly string[] {
  const file = new ParsedFile(path, parseHosts);
  return (name) => file.read().get(name) ?? [];
}

/** The search list in /etc/resolv.conf. */
export function systemSearchList(path = '/etc/resolv.conf'): () => SearchList {
  const file = new ParsedFile(path, parseSearchList);
  return () => file.read();
}

/** A resolver with the name servers of /etc/resolv.conf: a machine gets others when its network changes. */
export function systemResolver(path = '/etc/resolv.conf'): () => Resolver {
  const file = new ParsedFile(path, () => new Resolver({ timeout: 2000, tries: 2 }));
  return () => file.read();
}

/** A file that is read again when it changes. One that does not exist is empty. */
class ParsedFile<Parsed> {
  private changedAt = -1;
  private parsed: Parsed;

  constructor(
    private readonly path: string,
    private readonly parse: (text: string) => Parsed,
  ) {
    this.parsed = parse('');
  }

  read(): Parsed {
    const changedAt = statSync(this.path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (changedAt !== this.changedAt) {
      this.changedAt = changedAt;
      this.parsed = this.parse(changedAt === 0 ? '' : readFileSync(this.path, 'utf8'));
    }
    return this.parsed;
  }
}

/** The addresses of all lines that contain a name: IPv4 first, each kind in the order of the file. hosts(5) */
export function parseHosts(text: string): Map<string, string[]> {
  const lines = text
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/))
    // an address with a zone is only valid on its link
    .filter(([address = '']) => isIP(address) !== 0 && !address.includes('%'));
  const hosts = new Map<string, Set<string>>();
  for (const [address = '', ...names] of [...lines.filter(isOfIPv4), ...lines.filter((line) => !isOfIPv4(line))])
    for (const name of names) hosts.set(name, (hosts.get(name) ?? new Set()).add(address));
  return new Map([...hosts].map(([name, addresses]) => [name, [...addresses]]));
}

const isOfIPv4 = ([address = '']: string[]): boolean => isIPv4(address);

/** The last `search` or `domain` applies. resolv.conf(5) */
export function parseSearchList(text: string): SearchList {
  let domains: string[] = [];
  let singleLabelsFirst = true;
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line
      .replace(/[#;].*/, '')
      .trim()
      .split(/\s+/);
    if (keyword === 'search' || keyword === 'domain')
      domains = values.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== '');
    if (keyword === 'options' && values.includes('ndots:0')) singleLabelsFirst = false;
  }
  return { domains, singleLabelsFirst };
}
