/**
 * TLS 1.2 cipher suites of all listeners, by their OpenSSL names: forward secrecy and authenticated
 * encryption only (RFC 9325 §4.2). The first one that the client supports is used.
 */
export const TLS_1_2_CIPHERS = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':')

/** Node has one list for both versions. AES-CCM, which TLS 1.3 also has, is not in it. */
const TLS_1_3_CIPHERS = 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256'

/** Options of a TLS server over Node. */
export const NODE_TLS_OPTIONS = {
  minVersion: 'TLSv1.2',
  ciphers: `${TLS_1_3_CIPHERS}:${TLS_1_2_CIPHERS}`,
  honorCipherOrder: true,
} as const
