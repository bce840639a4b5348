import type { IHeaders } from 'kafkajs';

/** With more headers, a search through all of them takes longer than a map. */
const FEW = 16;

/** The headers of a record as text, in their order. Of those with the same name, the first one counts. */
export class RecordHeaders {
  readonly names: string[] = [];
  /** undefined: without a value, which Kafka allows. */
  private readonly values: (string | undefined)[] = [];
  /** Of the names and values. */
  bytes = 0;
  /** The places of the names, if there are many. */
  private places: Map<string, number> | undefined;

  /** The headers of a message of kafkajs. */
  static of(message: IHeaders = {}): RecordHeaders {
    const headers = new RecordHeaders();
    for (const [name, value] of Object.entries(message)) {
      const first: Buffer | string | null | undefined = Array.isArray(value) ? value[0] : value;
      headers.add(name, first?.toString(), Buffer.byteLength(name) + (first ? Buffer.byteLength(first) : 0));
    }
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

  get(name: string): string | undefined {
    return this.values[this.placeOf(name)];
  }

  /** bytes: of the name and the value. */
  add(name: string, value: string | undefined, bytes: number): void {
    if (this.placeOf(name) >= 0) return;
    this.bytes += bytes;
    this.places?.set(name, this.names.length);
    this.names.push(name);
    this.values.push(value);
    if (this.names.length === FEW) this.places = new Map(this.names.map((each, place) => [each, place]));
  }

  /** -1: there is none. */
  private placeOf(name: string): number {
    return this.places ? (this.places.get(name) ?? -1) : this.names.indexOf(name);
  }
}
