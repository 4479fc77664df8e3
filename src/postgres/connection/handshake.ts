import type { PgConfig, PgDriver } from './driver.ts'

/** Errors that end a connection before it is ready, and that waiting does not fix: see `handshakeOf`. */
const faults = new WeakSet<object>()

/** Whether the connection was never ready because of how it is configured. */
export function isHandshakeFault(error: unknown): boolean {
  return typeof error === 'object' && error !== null && faults.has(error)
}

/** The part of `pg.Connection` that says where an error comes from. */
interface Connection {
  on(event: 'error', listener: (error: unknown) => void): unknown
  off(event: 'error', listener: (error: unknown) => void): unknown
  readonly stream?: { readonly errored?: unknown; destroy?(): unknown }
}

/**
 * The client of pg, which recognises a password that is missing and TLS that does not match. Their errors have no SQLSTATE, as the driver
 * gives up before the server does, and mostly no code at all: nor has a connection that the server closes, or that takes too long. What
 * tells them apart is where they come from:
 *
 *     the stream, with a code of TLS      the certificate: a fault
 *     the stream, with any other or none  the network, or a timeout: an outage
 *     the driver, between two messages    it can't answer the server: a fault
 *     neither, the connection just ends   an outage
 */
export function handshakeOf(Client: PgDriver['Client']): PgDriver['Client'] {
  return class extends Client {
    constructor(config: PgConfig) {
      super(config)
      const { connection } = this as { readonly connection?: Connection }
      // A function for the password may ask a service that is down.
      const canTell = typeof config['password'] !== 'function'
      const look = (error: unknown) => {
        if (typeof error !== 'object' || error === null) return
        const { code } = error as { code?: unknown }
        const isOfDriver = code === undefined && error !== connection?.stream?.errored
        if (isOfTls(code) || (isOfDriver && canTell)) faults.add(error)
        // pg forgets the connection and leaves it open. The server would wait for an answer for a minute, and until then it can't drop a
        // database.
        connection?.stream?.destroy?.()
      }
      connection?.on('error', look)
      const settled = this as unknown as { once(event: 'connect', listener: () => void): unknown }
      settled.once('connect', () => connection?.off('error', look))
    }
  }
}

// https://nodejs.org/api/tls.html#x509-certificate-error-codes
const certificate = new Set([
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_GET_CRL',
  'UNABLE_TO_DECRYPT_CERT_SIGNATURE',
  'UNABLE_TO_DECRYPT_CRL_SIGNATURE',
  'UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_SIGNATURE_FAILURE',
  'CRL_SIGNATURE_FAILURE',
  'CERT_NOT_YET_VALID',
  'CERT_HAS_EXPIRED',
  'CRL_NOT_YET_VALID',
  'CRL_HAS_EXPIRED',
  'ERROR_IN_CERT_NOT_BEFORE_FIELD',
  'ERROR_IN_CERT_NOT_AFTER_FIELD',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'CERT_CHAIN_TOO_LONG',
  'CERT_REVOKED',
  'CERT_REJECTED',
  'CERT_UNTRUSTED',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'HOSTNAME_MISMATCH',
])

function isOfTls(code: unknown): boolean {
  return typeof code === 'string' && (certificate.has(code) || /^ERR_(?:TLS|SSL)_/.test(code))
}
