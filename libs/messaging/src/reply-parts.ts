import { randomUUID } from 'node:crypto';

/** The broker's limit is 4 MiB, and a smaller record delays the replies behind it less. */
export const PART_BYTES = 512 * 1024;
/** A larger reply would occupy the memory of the gateway for one request. */
export const MAX_REPLY_BYTES = 16 * 1024 * 1024;

/** A part of a reply. `id`: of this reply. `of`: how many parts it has. `index` counts from 0. */
export interface ReplyPart {
  id: string;
  index: number;
  of: number;
  value: Buffer;
}

/** The parts of a reply; one if it is small. */
export function partsOf(value: Buffer): ReplyPart[] {
  const of = Math.max(1, Math.ceil(value.length / PART_BYTES));
  const id = of === 1 ? '' : randomUUID();
  return Array.from({ length: of }, (_, index) => ({ id, index, of, value: value.subarray(index * PART_BYTES, (index + 1) * PART_BYTES) }));
}

/** The header of a part; undefined for a reply that has only one. */
export const partHeader = ({ id, index, of }: ReplyPart): string | undefined => (of === 1 ? undefined : `${id}/${index}/${of}`);

/** The parts that have arrived for one request. A part can arrive twice, and so can a reply: a request is handled at least once. */
export class ArrivedParts {
  private readonly replies = new Map<string, Map<number, Buffer>>();

  /** Returns a reply when it is complete. */
  add(header: string, value: Buffer): Buffer | undefined {
    const [id = '', index, of] = header.split('/');
    const parts = this.replies.get(id) ?? new Map<number, Buffer>();
    this.replies.set(id, parts.set(Number(index), value));
    if (parts.size < Number(of)) return undefined;
    return Buffer.concat([...parts].sort(([a], [b]) => a - b).map(([, part]) => part));
  }
}
