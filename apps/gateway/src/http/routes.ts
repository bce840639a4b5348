import type { FastifyInstance } from 'fastify';

/** All routes with their methods, to distinguish a known path with a wrong method from an unknown path. */
export class KnownRoutes {
  private readonly routes = new Map<string, { pattern: RegExp; methods: Set<string> }>();

  constructor(fastify: FastifyInstance) {
    fastify.addHook('onRoute', ({ url, method }) => {
      const route = this.routes.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
      for (const each of [method].flat()) route.methods.add(each);
      this.routes.set(url, route);
    });
  }

  /** The methods that the path supports; empty if the path is unknown. */
  methodsOf(path: string): string[] {
    const methods = new Set<string>();
    for (const { pattern, methods: known } of this.routes.values()) if (pattern.test(path)) for (const method of known) methods.add(method);
    return [...methods].filter((method) => method !== 'OPTIONS').sort();
  }
}

function patternOf(url: string): RegExp {
  const source = url
    .replace(/\/+$/, '')
    .split('/')
    .map((segment) => (segment.startsWith(':') ? '[^/]+' : segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/\\\*$/, '.*')))
    .join('/');
  return new RegExp(`^${source}/?$`);
}
