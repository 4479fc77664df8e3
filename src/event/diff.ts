/** A difference between two JSON values, at a path such as `lines[3].amount`; the empty path is the whole. */
export type JsonChange =
  | { readonly change: 'added'; readonly path: string; readonly after: unknown }
  | { readonly change: 'removed'; readonly path: string; readonly before: unknown }
  | { readonly change: 'changed'; readonly path: string; readonly before: unknown; readonly after: unknown }
