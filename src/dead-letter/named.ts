/*
 * Where a message names something of the code or the schema: a table, a column, a function. Each pattern has a fixed beginning and a limited length,
 * so that the search takes time in proportion to the text.
 */

const letters = String.raw`\p{L}\p{M}\p{N}_$`
const bare = String.raw`[\p{L}_][${letters}.]{0,127}`
// In the text of a JSON document, a quote has a backslash.
const [open, close] = [String.raw`\\*["'\x60[]`, String.raw`\\*["'\x60\]]`]
const quoted = String.raw`${open}[\p{L}_][${letters}.-]{0,127}${close}(?:\.${open}[\p{L}_][${letters}.-]{0,127}${close}){0,3}`
const name = `(?:${quoted}|${bare})`

// Quoted, as databases and their drivers write them. `type` and `role` are words of any message, so these need what follows them.
const kinds =
  '(?:column|object) name|relation|table|column|constraint|index|function|view|schema|sequence|enum|trigger|database'
const patterns = [
  // column "delivery" of relation "carrier" does not exist
  String.raw`(?<![${letters}])(?:${kinds})(?: named)? {1,3}(${quoted})`,
  // column carrier.delivery does not exist
  String.raw`(?<![${letters}])(?:${kinds}) {1,3}(${bare})(?= does not exist)`,
  // permission denied for table warehouse
  String.raw`(?<![${letters}])permission denied for (?:${kinds}) {1,3}(${name})`,
  // invalid input value for enum delivery: "x"
  String.raw`(?<![${letters}])invalid input value for enum {1,3}(${name})(?=:)`,
  // role "reporting" does not exist
  String.raw`(?<![${letters}])(?:type|role) {1,3}(${quoted})(?= does not exist)`,
  // function total(integer) does not exist
  String.raw`(?<![${letters}])function {1,3}(${bare})(?=\()`,
  // no such table: carrier
  String.raw`(?<![${letters}])(?:no such (?:table|column|function|index|view|trigger|module|savepoint|database|collation sequence)|(?:duplicate|ambiguous) column name): {0,3}(${name})`,
  // table orders has no column named delivery
  String.raw`(?<![${letters}])table {1,3}(${bare})(?= has no column named )`,
  String.raw`(?<![${letters}])has no column named {1,3}(${name})`,
  // UNIQUE constraint failed: carrier.id, carrier.delivery
  String.raw`(?<![${letters}])constraint failed: {0,3}(${name}(?:, ${name}){0,31})`,
  // Cannot read properties of undefined (reading 'delivery')
  String.raw`(?:\((?:reading|setting)|(?<![${letters}])destructure property) {1,3}(${quoted})`,
].map((pattern) => new RegExp(pattern, 'dgiu'))

const absent = /(?<=[\p{L}\p{M}\p{N}_$]) is not (?:a function|a constructor|defined|iterable)(?![\p{L}\p{M}\p{N}_$])/giu
const inPath = /[\p{L}\p{M}\p{N}_$.]/u
const longest = 128

/** The places of the names, from and to. */
export function* namedIn(text: string): Generator<readonly [number, number]> {
  for (const pattern of patterns)
    for (const { indices } of text.matchAll(pattern)) {
      const place = indices?.[1]
      if (place) yield place
    }
  // row.delivery is not a function
  for (const { index } of text.matchAll(absent)) {
    let start = index
    while (start > 0 && index - start < longest && inPath.test(text.charAt(start - 1))) start--
    yield [start, index]
  }
}
