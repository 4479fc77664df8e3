import type { Classified } from './classify.ts'
import type { FailureClass } from './failure.ts'
import { field, isA, text } from './peek.ts'

/** The codes of Node, libuv and undici, by rule. The reference tables are checked against these. */
export const codeRules = {
  /** Network errors. Most are over in seconds. */
  network: {
    class: 'transient',
    codes: [
      'ECONNREFUSED',
      'ECONNRESET',
      'ECONNABORTED',
      'EPIPE',
      'ENOTCONN',
      'ESHUTDOWN',
      'ETIMEDOUT',
      'ESOCKETTIMEDOUT',
      'EHOSTUNREACH',
      'EHOSTDOWN',
      'ENETUNREACH',
      'ENETDOWN',
      'ENETRESET',
      'ENONET',
      // No address of this family on this machine: ::1 without IPv6. Another address may work.
      'EADDRNOTAVAIL',
      'EPROTO',
      // Name resolution. A new name takes time to propagate.
      'ENOTFOUND',
      'EAI_AGAIN',
      'EAI_FAIL',
      'EAI_NODATA',
      'ENODATA',
      'ESERVFAIL',
      'EREFUSED',
      'ETIMEOUT',
      // undici, which is Node's fetch
      'UND_ERR_CONNECT_TIMEOUT',
      'UND_ERR_HEADERS_TIMEOUT',
      'UND_ERR_BODY_TIMEOUT',
      'UND_ERR_SOCKET',
      'UND_ERR_CLOSED',
      'UND_ERR_DESTROYED',
      'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
      // Node
      'ERR_SOCKET_CLOSED',
      'ERR_SOCKET_CONNECTION_TIMEOUT',
      'ERR_STREAM_PREMATURE_CLOSE',
      'ERR_TLS_HANDSHAKE_TIMEOUT',
      'ERR_HTTP_REQUEST_TIMEOUT',
      'ERR_HTTP2_ERROR',
      'ERR_HTTP2_GOAWAY_SESSION',
      'ERR_HTTP2_SESSION_ERROR',
      'ERR_HTTP2_STREAM_CANCEL',
      'ERR_HTTP2_STREAM_ERROR',
      // axios
      'ERR_NETWORK',
    ],
  },
  /** A resource is in use. */
  busy: { class: 'transient', codes: ['EAGAIN', 'EBUSY', 'EINTR'] },
  /** Cancelled: by a timeout, or because the result is not needed any more. */
  abort: { class: 'transient', codes: ['ABORT_ERR', 'UND_ERR_ABORTED', 'ERR_CANCELED'] },
  /** This machine is out of a resource. The next event would fail too. */
  machine: {
    class: 'infrastructure',
    codes: ['EMFILE', 'ENFILE', 'ENOSPC', 'EDQUOT', 'ENOMEM', 'ENOBUFS', 'EROFS', 'EIO', 'ERR_WORKER_OUT_OF_MEMORY'],
  },
  /**
   * A certificate. An operator must renew it, but it is not caused by an event: every call to that service fails until then, and
   * succeeds after. So it is a dependency failure, and nothing is parked.
   */
  tls: {
    class: 'dependency',
    codes: [
      'CERT_CHAIN_TOO_LONG',
      'CERT_HAS_EXPIRED',
      'CERT_NOT_YET_VALID',
      'CERT_REJECTED',
      'CERT_REVOKED',
      'CERT_SIGNATURE_FAILURE',
      'CERT_UNTRUSTED',
      'CRL_HAS_EXPIRED',
      'CRL_NOT_YET_VALID',
      'CRL_SIGNATURE_FAILURE',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'HOSTNAME_MISMATCH',
      'INVALID_CA',
      'INVALID_PURPOSE',
      'PATH_LENGTH_EXCEEDED',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'UNABLE_TO_GET_CRL',
      'UNABLE_TO_GET_ISSUER_CERT',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'ERR_TLS_CERT_ALTNAME_FORMAT',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
      'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
      'ERR_SSL_TLSV1_UNRECOGNIZED_NAME',
      'ERR_SSL_WRONG_VERSION_NUMBER',
    ],
  },
  /** The program called a function with invalid arguments. */
  bug: { class: 'permanent', codes: ['ERR_ASSERTION', 'UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED'] },
} as const satisfies Record<string, { class: FailureClass; codes: readonly string[] }>

const byName = new Map<string, Classified>(
  Object.entries(codeRules).flatMap(([rule, { class: failureClass, codes }]) =>
    codes.map((code) => [code, { class: failureClass, rule, evidence: code }] as const),
  ),
)

export function byCode(error: unknown): Classified | undefined {
  const code = field(error, 'code')
  return typeof code === 'string' ? byName.get(code) : undefined
}

/** Errors of an AbortSignal. The name alone is not enough: any error may be called TimeoutError. */
export function byAbort(error: unknown): Classified | undefined {
  const name = text(field(error, 'name'))
  const number = name === 'AbortError' ? 20 : name === 'TimeoutError' ? 23 : undefined
  if (name === undefined || number === undefined) return undefined
  const isOne = isA(error, DOMException) || field(error, 'code') === number
  return isOne ? { class: 'transient', rule: 'abort', evidence: name } : undefined
}
