/*
 * The types that a row can contain and a reducer can return. For a mistake, the expected type is an error sentence, which TypeScript prints at
 * the field: "Type 'Date' is not assignable to type '"a Date is not JSON: …"'".
 */

type Scalar = string | number | boolean | null

/** A row as a reducer receives it: readonly at any depth. */
export type Frozen<T> = { readonly [Field in keyof T]: FrozenValue<T[Field]> }

// Separate from `Frozen`, which must be a plain mapped type: then errors print `Frozen<Order>` instead of all its fields.
// A list is written out: a mapped list is computed at once, which never ends for a recursive type.
export type FrozenValue<T> = unknown extends T
  ? T
  : T extends Scalar | undefined
    ? T
    : T extends readonly (infer Item)[]
      ? Item[] extends T
        ? readonly FrozenValue<Item>[]
        : Frozen<T>
      : Frozen<T>

/**
 * Marks a row that was passed to a reducer, to distinguish it from a row that the reducer creates: a spread omits private members. Without the
 * mark, TypeScript merges `{ ...row, extra }` of one branch with `row` of another, and the extra field is not reported.
 */
declare class Private {
  private readonly given: true
}
// An interface, because linters warn about the spread of a class instance (`no-misused-spread`).
export interface Given extends Private {}
export type GivenRow<Row> = unknown extends Row
  ? Row
  : Row extends Scalar | readonly unknown[]
    ? FrozenValue<Row>
    : Frozen<Row> & Given

/** The type itself if it is JSON. Otherwise the type with an error sentence in place of each part that is not JSON. */
export type JsonValue<T> = unknown extends T
  ? T
  : T extends Scalar
    ? T
    : [NotJson<T>] extends [never]
      ? T extends readonly (infer Item)[]
        ? Item[] extends T
          ? readonly JsonValue<Item>[]
          : { [Field in keyof T]: JsonValue<T[Field]> }
        : { [Field in keyof T]: JsonValue<Present<T, Field>> | Absent<T, Field> }
      : NotJson<T>

// An optional field can be left out, also one whose type names `undefined`, as zod declares it; so can a key of a record.
type Absent<T, Field extends keyof T> = Record<never, never> extends Pick<T, Field> ? undefined & T[Field] : never
type Present<T, Field extends keyof T> =
  Record<never, never> extends Pick<T, Field> ? Exclude<T[Field], undefined> : T[Field]

type NotJson<T> = T extends undefined
  ? 'undefined is not JSON: use null, or leave an optional field out'
  : T extends bigint
    ? 'a bigint is not JSON: use a string'
    : T extends symbol
      ? 'a symbol is not JSON'
      : T extends (...args: never) => unknown
        ? 'a function is not JSON'
        : T extends Date
          ? 'a Date is not JSON: use date.toISOString()'
          : T extends ReadonlyMap<unknown, unknown>
            ? 'a Map is not JSON: use an object'
            : T extends ReadonlySet<unknown>
              ? 'a Set is not JSON: use an array'
              : T extends PromiseLike<unknown>
                ? 'a promise is not JSON: a fold is synchronous'
                : never

/** The return type of `initial`. `Row` is inferred from the first branch. */
export type InitialRow<Row> = [Row] extends [JsonValue<Row>] ? Row : NoInfer<JsonValue<Row>>

/** Like `unknown`, but with the primitive types that `KeptLiteral` needs. */
export type AnyResult = string | number | NotPrimitive
type NotPrimitive = NonNullable<unknown> | null | undefined

/**
 * Excludes nothing. TypeScript 5.4 widens a literal that a function returns, as in `() => 'on'`, if the expected type can't be a string
 * while it is still being inferred.
 */
export type KeptLiteral<Result, Row> = unknown extends Row ? AnyResult : PrimitiveOf<Result>
type PrimitiveOf<Result> = Result extends string ? string : Result extends number ? number : NotPrimitive

/**
 * The type of a reducer. While TypeScript checks the body, the row is known and `Result` is not: then the reducer returns the row, which gives
 * literals in callbacks and conditions their types. Afterwards the result is compared (`Compared`). Both are in one union because TypeScript
 * fills in the row only in a conditional type, and only if it is known already; with `initial: (key) => …` it is not yet, and `Compared` is used.
 */
export type ReducerType<Compared, Result, Row, Returning> =
  | (Compared & (IsChecked<Result, Row> extends true ? never : unknown))
  | (IsChecked<Result, Row> extends true ? Returning : never)

type IsChecked<Result, Row> = unknown extends Row ? false : [AnyResult] extends [Result] ? true : false

/**
 * The required return type of the reducer of `Type`, computed from its actual return type `Result`. TypeScript does not report extra fields in
 * the result of a function or beside a spread, so the result is inferred and compared. An object literal gets its error at the wrong field.
 * `Kind` is `'state'` for the state of commands, which can contain `undefined`.
 */
export type ReducedRow<Result, Row, Type, KnownType, Kind = 'row'> = unknown extends Row
  ? Type extends KnownType
    ? Result
    : NotAType<Type>
  : [Result, Type, Inexact<Result, Row, Kind>] extends [FrozenValue<Row>, KnownType, never]
    ? Result
    : Type extends KnownType
      ? [Result] extends [FrozenValue<Row>]
        ? Refused<Result, Row, Kind>
        : [Result] extends [PromiseLike<unknown>]
          ? 'a fold is synchronous'
          : FrozenValue<Row>
      : NotAType<Type>

type NotAType<Type> = `${Type & string} is not a type of the events`

// An object literal gets its error at the field. A function with several returns gets one error, which would print each branch in full;
// so only the sentence about the field is expected there.
type Refused<Result, Row, Kind> = [ExtraField<Result, Row>] extends [never]
  ? Exactly<Inexact<Result, Row, Kind>, Row, Kind>
  : true extends IsUnion<Result>
    ? NotAField<ExtraField<Result, Row>, Row, Kind>
    : [Result] extends [{ readonly [Field in ExtraField<Result, Row>]?: undefined }]
      ? // An optional field would accept the value `undefined`.
        { readonly [Field in ExtraField<Result, Row>]: NotAField<Field, Row, Kind> }
      : { readonly [Field in ExtraField<Result, Row>]?: NotAField<Field, Row, Kind> }

type IsUnion<T, All = T> = T extends unknown ? ([All] extends [T] ? false : true) : never

type NotAField<Field, Row, Kind> =
  Field extends FieldOf<Row>
    ? `${Field & string} is a field of another member of the union`
    : `${Field & string} is not a field of the ${Kind & string}`

type FieldOf<T> = T extends unknown ? keyof T : never
type ValueOf<T, Field> = T extends unknown ? (Field extends keyof T ? T[Field] : never) : never
type ExtraField<Result, Row> = Result extends object ? Exclude<keyof Result, FieldOf<MemberFor<Result, Row>>> : never

/** The members of a union that the result is assignable to; all of them if it is assignable only to the union. */
type MemberFor<Result, Row> = [Fitting<Result, Row>] extends [never] ? Row : Fitting<Result, Row>
type Fitting<Result, Row> = Row extends unknown ? ([Result] extends [FrozenValue<Row>] ? Row : never) : never

// Compares each member of a union separately: a member with an extra field would match another member without it.
type Inexact<Result, Row, Kind> = Result extends unknown
  ? [Result] extends [Exactly<Result, Row, Kind>]
    ? never
    : Result
  : never

/** The result with an error sentence for each field that the row does not have, at any depth, and for each `undefined` value in a row. */
type Exactly<Result, Row, Kind> = unknown extends Row
  ? Result
  : Result extends Scalar
    ? Result
    : Result extends undefined
      ? Kind extends 'row'
        ? NotJson<Result>
        : Result
      : Result extends readonly unknown[]
        ? readonly Exactly<Result[number], ValueOf<Row, number>, Kind>[]
        : string extends FieldOf<Row>
          ? Result
          : MemberFor<Result, Row> extends infer Member
            ? {
                readonly [Field in keyof Result]: Field extends FieldOf<Member>
                  ? Exactly<Present<Result, Field>, ValueOf<Member, Field>, Kind> | Absent<Result, Field>
                  : NotAField<Field, Row, Kind>
              }
            : never
