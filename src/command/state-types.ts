import type { EventCatalog, EventNamed, TypeName } from '../event/catalog.ts'
import type { AnyResult, FrozenValue, Given, KeptLiteral, ReducedRow, ReducerType } from '../projection/row-types.ts'

/** A state as a reducer receives it. */
export type GivenState<State> = unknown extends State
  ? State
  : State extends readonly unknown[]
    ? Readonly<State>
    : State extends object
      ? Readonly<State> & Given
      : State

export type StateReducers<C extends EventCatalog, State> = {
  readonly [T in TypeName<C>]?: (state: Readonly<State>, event: EventNamed<C, T>) => State
}

/** As in a projection, see `row-types.ts`, but a state can contain values that are not JSON. */
export type ComparedReducers<C extends EventCatalog, State, Results> = {
  readonly [T in keyof Results]: ReducerType<
    (
      state: GivenState<State>,
      event: EventNamed<C, T>,
    ) => ReducedRow<Results[T], ComparedState<State>, T, TypeName<C>, 'state'> & KeptLiteral<Results[T], State>,
    Results[T],
    State,
    (state: GivenState<State>, event: EventNamed<C, T>) => FrozenValue<State>
  >
}

// The type `object` names no fields: every object is a right result.
type ComparedState<State> = [keyof State] extends [never] ? ([object] extends [State] ? unknown : State) : State

export type StateResults<C extends EventCatalog> = { readonly [T in TypeName<C>]?: AnyResult }
