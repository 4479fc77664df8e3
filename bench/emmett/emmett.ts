import { type Client, Pool } from 'pg'

// What we use of Emmett, written down: it is installed only where its benchmark runs, and the rest must compile without it.

export interface EmmettEvent {
  readonly type: string
  readonly data: unknown
}

export interface RecordedEmmettEvent<Data> {
  readonly type: string
  readonly data: Data
  readonly metadata: { readonly streamName: string; readonly streamPosition: bigint; readonly globalPosition: bigint }
}

export interface EmmettProjection<Data> {
  readonly name: string
  readonly canHandle: readonly string[]
  readonly handle: (
    events: readonly RecordedEmmettEvent<Data>[],
    context: { readonly connection: { readonly client: Client } },
  ) => Promise<void>
}

export interface EmmettStore {
  readonly schema: { migrate(): Promise<unknown> }
  appendToStream(stream: string, events: readonly EmmettEvent[]): Promise<unknown>
  consumer(options: {
    readonly pulling: { readonly batchSize: number; readonly pullingFrequencyInMs: number }
    readonly stopWhen: { readonly noMessagesLeft: boolean }
  }): {
    projector<Data>(options: {
      readonly projection: EmmettProjection<Data>
      /** Asked after every event; true ends the consumer, with the batch committed up to there. */
      readonly stopAfter: (event: RecordedEmmettEvent<Data>) => boolean
    }): unknown
    start(): Promise<void>
  }
}

interface EmmettPostgres {
  readonly getPostgreSQLEventStore: (
    url: string,
    options: { readonly connectionOptions: { readonly pool: Pool } },
  ) => EmmettStore
  readonly postgreSQLProjection: <Data>(definition: EmmettProjection<Data>) => EmmettProjection<Data>
}

export interface OpenEmmett extends AsyncDisposable {
  readonly store: EmmettStore
  readonly projection: EmmettPostgres['postgreSQLProjection']
  readonly pool: Pool
}

/** Over a pool of ours, because one that Emmett makes has no listener for errors: an idle connection that ends would end us. */
export async function openEmmett(url: string): Promise<OpenEmmett> {
  const specifier = '@event-driven-io/emmett-postgresql'
  const { getPostgreSQLEventStore, postgreSQLProjection } = (await import(specifier)) as EmmettPostgres
  const pool = new Pool({ connectionString: url })
  pool.on('error', () => undefined)
  return {
    store: getPostgreSQLEventStore(url, { connectionOptions: { pool } }),
    projection: postgreSQLProjection,
    pool,
    [Symbol.asyncDispose]: () => pool.end(),
  }
}
