export const SERVICES = ['gateway', 'catalog', 'routing', 'event-store', 'runtime'] as const;
export type Service = (typeof SERVICES)[number];
