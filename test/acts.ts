import {
  createOperator,
  type DiffOptions,
  type DropOptions,
  type Operator,
  type OperatorOptions,
  type RebuildDiff,
  type RebuildOptions,
  type Rebuilt,
  type Runtime,
  type Store,
  type Switched,
  type SwitchOptions,
} from 'holdfast'

type Subscribed = OperatorOptions['subscriptions'][number]
/** Whose act it is, where that is not what the test is about. */
type Acting = Partial<Runtime> & { readonly store: Store; readonly by?: string; readonly reason?: string }

/** An operator for a test that is about something else. */
export function operatorOf(store: Store, subscriptions: readonly Subscribed[] = [], more: object = {}): Operator {
  return createOperator({ store, subscriptions, by: 'test', ...more })
}

function acting<Options>(subscriptions: readonly Subscribed[], { store, by, clock, timers, random, ...given }: Acting) {
  const runtime = { ...(clock && { clock }), ...(timers && { timers }), ...(random && { random }) }
  const operator = operatorOf(store, subscriptions, { ...runtime, ...(by !== undefined && { by }) })
  return { operator, options: { reason: 'a test', ...given } as Options }
}

export function rebuild(projection: Subscribed, options: Omit<RebuildOptions, 'reason'> & Acting): Promise<Rebuilt> {
  const acts = acting<RebuildOptions>([projection], options)
  return acts.operator.rebuild(projection.name, acts.options)
}

export function switchRebuild(
  projection: Subscribed,
  options: Omit<SwitchOptions, 'reason'> & Acting,
): Promise<Switched> {
  const acts = acting<SwitchOptions>([projection], options)
  return acts.operator.switchRebuild(projection.name, acts.options)
}

export function dropRebuild(name: string, options: Omit<DropOptions, 'reason'> & Acting): Promise<void> {
  const acts = acting<DropOptions>([], options)
  return acts.operator.dropRebuild(name, acts.options)
}

export function diffRebuild(
  projection: Subscribed,
  { store, ...options }: DiffOptions & { readonly store: Store },
): Promise<RebuildDiff> {
  return operatorOf(store, [projection]).diffRebuild(projection.name, options)
}
