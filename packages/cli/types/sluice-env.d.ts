// Types for components of Sluice: `export default defineSource({ … })` in a JavaScript or TypeScript file. Written by `sluice types`.

declare namespace Sluice {
  /** A value that an event, or `this.db`, can contain: JSON. */
  type Json = string | number | boolean | null | undefined | Json[] | { [name: string]: Json };

  interface ValueTypes {
    string: string;
    integer: number;
    boolean: boolean;
    object: Record<string, any>;
    any: any;
    'string[]': string[];
    'integer[]': number[];
    'boolean[]': boolean[];
    'object[]': Record<string, any>[];
    'any[]': any[];
    /** Accepted for components of other systems, without an effect. */
    http_request: any;
    alert: any;
    data_store: any;
  }

  type PropType = keyof ValueTypes | 'app' | '$.interface.http' | '$.interface.timer' | '$.service.db';

  interface PropAttributes {
    label?: string;
    description?: string;
    optional?: boolean;
    /** Encrypted, and masked in responses. */
    secret?: boolean;
    default?: unknown;
    /** Values to choose from, or a function that the API calls for a user interface. */
    options?: readonly unknown[] | ((context: any) => unknown);
    min?: number;
    max?: number;
    hidden?: boolean;
    disabled?: boolean;
    withLabel?: boolean;
    useQuery?: boolean;
    reloadProps?: boolean;
  }

  interface ValueProp extends PropAttributes {
    type: keyof ValueTypes;
  }

  interface HttpProp extends PropAttributes {
    type: '$.interface.http';
    /** The component responds to requests with `this.<prop>.respond`. */
    customResponse?: boolean;
    /** The response is sent when the events of the run are stored. */
    respondWhenStored?: boolean;
  }

  interface TimerProp extends PropAttributes {
    type: '$.interface.timer';
    default?: TimerDefault;
  }

  interface DbProp extends PropAttributes {
    type: '$.service.db';
  }

  interface AppProp<Methods = Record<string, (...values: any[]) => any>> extends PropAttributes {
    type: 'app';
    /** The app whose connections it takes. */
    app?: string;
    methods?: Methods;
    propDefinitions?: Record<string, any>;
  }

  /** A prop that an app defines. */
  interface DefinedProp extends PropAttributes {
    propDefinition: readonly unknown[];
    type?: PropType;
  }

  type Prop = PropType | ValueProp | HttpProp | TimerProp | DbProp | AppProp | DefinedProp;

  type TimerDefault = { intervalSeconds: number } | { cron: string; timezone?: string };

  /** `this.timer`: the configuration of the timer. */
  interface Timer {
    intervalSeconds?: number;
    interval_seconds?: number;
    cron?: string;
    timezone?: string;
  }

  /** `this.db`: kept per source, over runs, restarts and changes of the code. Both methods are synchronous. */
  interface Db {
    get(key: string): any;
    /** `undefined` deletes the key. */
    set(key: string, value: Json | object): void;
  }

  /** `this.http`. */
  interface Http {
    /** The URL of the source; also in `deploy` and `activate`. */
    readonly endpoint: string;
  }

  /** `this.http` with `customResponse: true`. */
  interface RespondingHttp extends Http {
    /** The first call in a run counts. It is sent at once. */
    respond(response: { status?: number | string; headers?: Record<string, unknown>; body?: unknown }): void;
  }

  /** The event of a request to the endpoint. */
  interface HttpEvent {
    method: string;
    /** Below the endpoint, with its leading `/`. */
    path: string;
    /** A list if a name occurs several times. */
    query: Record<string, any>;
    /** As it was sent, if it differs from `querystring.stringify(query)`. */
    rawQuery: string | undefined;
    /** Names in lower case. */
    headers: Record<string, any>;
    /** The body as text, or in base64 if it is not UTF-8. */
    bodyRaw: string;
    bodyBase64: boolean | undefined;
    /** Parsed, if it is JSON or a form; otherwise the text. */
    body: any;
  }

  /** The event of a tick of the timer. */
  interface TimerEvent {
    /** Unix seconds. */
    timestamp: number;
    interval_seconds?: number;
    cron?: string;
  }

  interface EmitMetadata {
    /** Your id of the item; `dedupe` uses it. */
    id?: string | number;
    /** The stream; absent: the default one. */
    name?: string;
    /** One line for lists. */
    summary?: string;
    /** When it happened: the emits of a run are sorted by it. */
    ts?: Date | string | number;
    /** When it is to be emitted, in ms: it waits on the stream `$in` until then. */
    delivery_ts?: number;
  }

  type TypeOf<P> = P extends string ? P : P extends { readonly type: infer T } ? T : unknown;

  type ValueOf<P> =
    TypeOf<P> extends 'app'
      ? AppOf<P>
      : TypeOf<P> extends '$.service.db'
        ? Db
        : TypeOf<P> extends '$.interface.http'
          ? P extends { readonly customResponse: true }
            ? RespondingHttp
            : Http
          : TypeOf<P> extends '$.interface.timer'
            ? Timer
            : TypeOf<P> extends keyof ValueTypes
              ? ValueTypes[TypeOf<P>]
              : any;

  /** The credentials of the connection of an app. */
  interface Auth {
    $auth: Record<string, any>;
  }

  type AppOf<P> = (P extends { readonly methods: infer M } ? M : unknown) & Auth;

  /** An optional prop without a default may be absent. */
  type PropValue<P> = P extends { readonly default: {} }
    ? ValueOf<P>
    : P extends { readonly optional: true }
      ? ValueOf<P> | undefined
      : ValueOf<P>;

  /** `this` in `run`, hooks and methods. */
  type This<Props, Methods> = { readonly [Name in keyof Props]: PropValue<Props[Name]> } & Methods & {
      /** Emits any JSON value. It need not be awaited. */
      $emit(event: unknown, metadata?: EmitMetadata): void;
    };

  type TypesOf<Props> = TypeOf<Props[keyof Props]>;

  /** Exact for a source with one interface. One without an interface, or with several, narrows it itself. */
  type EventOf<Props> =
    '$.interface.http' extends TypesOf<Props>
      ? '$.interface.timer' extends TypesOf<Props>
        ? any
        : HttpEvent
      : '$.interface.timer' extends TypesOf<Props>
        ? TimerEvent
        : any;

  interface Source<Props, Methods> {
    name: string;
    key?: string;
    version?: string;
    description?: string;
    type?: 'source';
    /** The values that a user configures, and the interfaces and services that `run` uses. */
    props?: Props;
    /** Functions, bound to `this`. */
    methods?: Methods;
    hooks?: {
      /** Once, when the source is created, before `activate`. */
      deploy?(): unknown;
      /** After creation, after each change, and when the source is switched on. */
      activate?(): unknown;
      /** Before a change, when the source is switched off, and before it is deleted; it has 10 seconds. */
      deactivate?(): unknown;
    };
    /** `unique`: drops ids among the last 100. `greatest`: drops ids up to the greatest one. `last`: drops what precedes the last id. */
    dedupe?: 'unique' | 'greatest' | 'last';
    /** How many runs of one source may be in progress; with `dedupe` always 1. */
    concurrency?: number;
    /** How often a failed run for an event is repeated; `true`: as often as a delivery. */
    retries?: boolean | number;
    /** Called with the event of the interface. Without it, that event is emitted. */
    run?(event: EventOf<Props>): unknown;
    additionalProps?(...values: any[]): unknown;
    sampleEmit?: unknown;
    annotations?: unknown;
  }
}

/** Packages without types, and modules of Node without `@types/node`, can be imported: they are `any`. */
declare module '*';

/** Returns its argument, and gives it types. */
declare function defineSource<
  const Props extends Record<string, Sluice.Prop> = {},
  Methods extends Record<string, (...values: any[]) => any> = {},
>(source: Sluice.Source<Props, Methods> & ThisType<Sluice.This<Props, Methods>>): object;

/** The same for an app that is in a variable. */
declare function defineApp<Methods extends Record<string, (...values: any[]) => any> = {}>(
  app: Sluice.AppProp<Methods> & ThisType<Methods & Sluice.Auth>,
): { type: 'app'; methods: Methods };

/** The same as `defineSource`. */
declare const defineComponent: typeof defineSource;
