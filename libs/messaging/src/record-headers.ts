import type { IHeaders } from 'kafkajs';
import type { ProtocolReader } from './protocol-reader.js';
import { RepeatedTexts } from './repeated-texts.js';

/** No more headers of a record are decoded. */
export const MAX_HEADERS = 1000;
/** The memory of a decoded header in addition to its bytes: its texts are objects, and found by a map. */
const BYTES_EACH = 100;
/** With more headers, a search through all of them takes longer than a map, and decoding them early would take much more memory than their bytes. */
const FEW = 16;

/** Most records of a topic have headers with the same names, and many with the same values. */
const repeatedNames = new RepeatedTexts();
const repeatedValues = new RepeatedTexts();

/** The headers of a record as text, in their order. Of those with the same name, the first one counts. More than a few are decoded when one of them is needed. */
export class RecordHeaders {
  private readonly decodedNames: string[] = [];
  /** undefined: without a value, which Kafka allows. */
  private readonly values: (string | undefined)[] = [];
  /** The places of the names, if there are many. */
  private places: Map<string, number> | undefined;
  /** undefined: they are decoded. */
  private encoded: ProtocolReader | undefined;

  private constructor(
    private readonly count: number,
    /** Their size in memory once they are decoded. */
    readonly bytes: number,
  ) {}

  /** The headers at the end of a record. */
  static encoded(end: ProtocolReader): RecordHeaders {
    const count = end.varint();
    const headers = new RecordHeaders(count, end.left + BYTES_EACH * Math.min(count, MAX_HEADERS));
    if (count > FEW) headers.encoded = end.rest();
    else headers.decode(end);
    return headers;
  }

  /** The headers of a message of kafkajs. */
  static of(message: IHeaders = {}): RecordHeaders {
    const entries = Object.entries(message).map(([name, value]): [string, Buffer | string | null | undefined] => [
      name,
      Array.isArray(value) ? value[0] : value,
    ]);
    const bytes = entries.reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + (value ? Buffer.byteLength(value) : 0), 0);
    const headers = new RecordHeaders(entries.length, bytes + BYTES_EACH * entries.length);
    for (const [name, value] of entries.slice(0, MAX_HEADERS)) headers.add(name, value?.toString());
    return headers;
  }

  /** The same in the form of a message of kafkajs. */
  toKafkajs(): IHeaders {
    const bytes = (name: string) => {
      const text = this.get(name);
      return text === undefined ? undefined : Buffer.from(text);
    };
    return Object.fromEntries(this.names.map((name) => [name, bytes(name)]));
  }

  /** Whether there are more than MAX_HEADERS: the others are missing here. */
  get areTooMany(): boolean {
    return this.count > MAX_HEADERS;
  }

  get names(): readonly string[] {
    if (this.encoded) this.decode(this.encoded);
    return this.decodedNames;
  }

  get(name: string): string | undefined {
    if (this.encoded) this.decode(this.encoded);
    return this.values[this.placeOf(name)];
  }

  private decode(encoded: ProtocolReader): void {
    this.encoded = undefined;
    for (let left = Math.min(this.count, MAX_HEADERS); left > 0; left--) {
      const name = encoded.text(encoded.varint(), repeatedNames);
      const length = encoded.varint();
      this.add(name, length < 0 ? undefined : encoded.text(length, repeatedValues));
    }
  }

  private add(name: string, value: string | undefined): void {
    if (this.placeOf(name) >= 0) return;
    this.places?.set(name, this.decodedNames.length);
    this.decodedNames.push(name);
    this.values.push(value);
    if (this.decodedNames.length === FEW) this.places = new Map(this.decodedNames.map((each, place) => [each, place]));
  }

  /** -1: there is none. */
  private placeOf(name: string): number {
    return this.places ? (this.places.get(name) ?? -1) : this.decodedNames.indexOf(name);
  }
}
