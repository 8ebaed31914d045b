import assert from 'node:assert'
import { isDigit, isLetter } from './bytes.ts'

/**
 * The role of a field. The id of a field is FIELD_RANKS * role + rank. Of two fields of one role,
 * the one with the smaller rank is preferred.
 *
 *   time      when the request was made
 *   client    the address that made a request, by a name with no other meaning (`srcip`)
 *   address   an address that may be the client's, the device's or any other (`ip`)
 *   host      the requested host, by a name with no other meaning (`qname`, `sni`)
 *   url       the requested URL
 *   own       a name that devices give to themselves or the client (`hostname`), or a user's domain
 *   action    whether the request was allowed
 *   target    the other end of a connection, its ports, or the method of a request
 *   account   a user who may not be the client's: an address of mail, the other end of a connection
 *   kind      text that says which kind of record the message is
 *   foreign   only in records that are no client's request: mail, sign-ins, audits, leases,
 *             processes, a web server's own requests
 *   system    only in the event log of an operating system, whose `Domain` is the machine's
 *   logger    written by a program or forwarder about itself
 *   control   depends on the format
 *   user      the client's user
 *   sent      bytes that the client sent, by a name with no other meaning (`cs-bytes`)
 *   received  bytes that the client received
 */
export const FieldKind = {
  time: 0,
  client: 1,
  address: 2,
  host: 3,
  url: 4,
  own: 5,
  action: 6,
  target: 7,
  account: 8,
  kind: 9,
  foreign: 10,
  system: 11,
  logger: 12,
  control: 13,
  user: 14,
  sent: 15,
  received: 16,
} as const
export type FieldKind = (typeof FieldKind)[keyof typeof FieldKind]

export const FIELD_RANKS = 32
export const FIELD_KINDS = 17
export const NO_FIELD = -1

/*
 * Names of fields: lower case, ASCII letters and digits only (`direccindeorigen` is "Dirección de
 * origen"), in English, German, French and Spanish. Each word is a rank; words with a slash between
 * them share a rank. The internal address precedes the external address (Netskope writes
 * both). A `source` or `destination` may be an address or a name: only an address is read as the
 * client, only a name as the host.
 */
const TIMES =
  'timegeneratedhighresolution/xcstimestamp eventtime/ereigniszeit epochtime timestamp/zeitstempel/horodatage/marcadetiempo/requesttimestamp timegenerated generatetime/generatedtime devtime datetime/datumuhrzeit/datumundzeit/datumunduhrzeit/dateheure/dateetheure/fechahora/fechayhora time/zeit/uhrzeit/heure/hora receivetime receivedtime logtime eventdate starttime/startzeit start rt date/datum/fecha ts t'
const CLIENTS =
  'xcsuserip/devicelocalip userip clientip/ipclient/ipduclient/ipcliente/ipdelcliente srcip sourceip/quellip/ipsource/iporigen/ipdeorigen sourceaddress/quelladresse/adressesource/direccinorigen/direccindeorigen src cip csip/cltip/cltintip/cltsip clientaddress/clientadresse/adresseclient/adresseduclient/direccindelcliente internalip srcipv6 sourceipaddress/quellipadresse/adresseipsource/direccinipdeorigen client/cliente clientipaddress/clientipadresse/adresseipclient/adresseipduclient/direccinipdelcliente remoteaddr initiator requester clientpublicip/cltpubip source/quelle/origen/srchost'
const ADDRESSES = 'hostip ipaddress ip externalip'
const HOSTS =
  'qh/dnsquestionname/dnsrrname/tlssni/quicsni/httphostname urldomain/destinationdomain/serverdomain dsthost desthost/destinationhost/targethost/zielhost/htededestination/hostdedestino dstname destinationhostname/destinationfqdn dhost cshost/xcshost qname query queryname questionname requesteddomain/requestedhost/angefordertedomain/angefordertedomne/domainedemand/dominiosolicitado sni/xcssni dnsrequest dnsreq/dnsquery rrname destination'
const URLS =
  'url/urloriginal/urlfull/zielurl/webadresse/adresseurl/direccinurl urlfilename requesturl uri csuri/xcsurl request eurl fullurl'
const OWN =
  'domain/domne/domaine/dominio/nomdedomaine/nombrededominio host/hte website fqdn hostname servername site name'
const ACTIONS =
  'action/aktion/accin/eventaction/reqaction/policyaction/alertaction act disp disposition verdict labelsrequeststatus decision result status'
const TARGETS =
  'dst dstip destip destinationip/destinationaddress/zielip/zieladresse/ipdestination/ipdedestino dest serverip sip daddr dport/dpt sourceport/srcport/sport/spt dstport destport destinationport requestmethod method/httpmethod/csmethod'
const ACCOUNTS =
  'userid/useremail duser dstuser/destinationuser/targetuser identity account/accountname principal/actor email/mail'
const USERS =
  'srcuser/sourceuser/sourceusername/suser/clientuser/clientusername csusername/xcsusername user/benutzer/utilisateur/usuario username/benutzername/nomdutilisateur/nombredeusuario login usrname useridentity userprincipalname/upn'
/*
 * Names such as `bytes_sent`, `sent` or `in` are not here: the sender is the client for a firewall
 * and the server for a proxy (nginx), and CEF's dictionary and its users disagree.
 */
const SENT =
  'csbytes sentbyte reqsize/requestsize clientbytes srcbytes/sourcebytes httprequestbytes uploadbytes/bytesuploaded bytestoserver/flowbytestoserver/clienttoserverbytes'
const RECEIVED =
  'scbytes rcvdbyte respsize/responsesize serverbytes dstbytes/destinationbytes httpresponsebytes downloadbytes/bytesdownloaded bytestoclient/flowbytestoclient/servertoclientbytes'
const KINDS =
  'type logtype/logcategory subtype eventtype eventname event/eventclass/eventclassid eventcategory/categoryname category cat class/classname sourcetype servicetype service/servicename program/programname/appname/application process/daemon/ident protocol/proto app/applicationprotocol facility dataset/eventdataset module/eventmodule logname/logger msg/message description/desc reason details/detail/summary/title product/deviceproduct tag/tags activity/activitytype outcome'
const FOREIGN = [
  // Mail.
  'mailfrom/envelopefrom/envfrom/headerfrom/fromdomain/fromaddress/frommailaddress',
  'sender/absender/expditeur/remitente/senderdomain/senderaddress/senderemail/senderfromdomain/senderfromaddress/senderip',
  'rcpt/rcptto/mailto/empfnger/destinataire/destinatario/recipient/recipients/recipientaddress/recipientemailaddress/recipientdomain',
  'spf/dkim/dmarc/spfresult/dkimresult/dmarcresult internetmessageid/networkmessageid/smtpdialog/smtpstatus/queueid/qid mailer relay',
  // Sign-ins, sessions and audits.
  'operation/operationname workload/recordtype/auditid/audittype/auditevent actorid/actoremail/actorip/actorlogin/actoruserid',
  'authmethod/authtype/authresult/authstatus/authenticationmethod/authenticationprotocol/authprotocol logontype/logonid/logonprocess/logonprocessname',
  'mfa/mfaresult/factor/conditionalaccessstatus vpn/vpnip/tunnelip/tunneltype/assignedip/vpnuser/vpngateway sessionuser/sessionevent loginstatus/loginresult/loginevent',
  // Leases and neighbors.
  'lease/leasetime/leaseduration/leaseexpires/dhcptype/dhcpmessage/dhcpaction offeredip/requestedip/assignedaddress',
  // Processes and files.
  'commandline/processcommandline/initiatingprocesscommandline/cmdline parentprocess/parentprocessname/parentimage/parentcommandline auid/ses',
  // A web server or load balancer in front of it.
  'upstream/upstreamaddr/upstreamhost/upstreamstatus/upstreamresponsetime backend/backendname/backendip/backendserver vhost/virtualhost/virtualserver/httpvhost',
  'requesturi/requestpath/scriptname/documentroot webaclid/ruleset/targetgrouparn/distributionid/edgelocation/xedgelocation/xedgeresulttype/xhostheader/appfirewallname/apiendpoint/requestheadersxforwardedhost/requestheadersxrealip/cfray/rayid ingressname/poolname/loadbalancer/elb',
].join(' ')
const SYSTEMS =
  'channel/winlogchannel providername/winlogprovidername/provider/providerguid eventrecordid/recordnumber/recordid/winlogrecordid sourcemodulename/sourcemoduletype sourcename computer/computername/winlogcomputername targetdomainname/subjectdomainname/targetusername/subjectusername eventid/eventidentifier/winlogeventid'
const LOGGERS =
  'level/loglevel/severity/priority/pri syslogseverity/syslogfacility/facilitycode shortmessage pid/procid/processid logsource/dvc/dvchost/devicename/devname/observername agent/agentname/beatname thread/stacktrace'

/** The id of each name that more than one vendor uses. */
export const SYNONYMS: Readonly<Record<string, number>> = {
  ...idsOf(FieldKind.time, TIMES),
  ...idsOf(FieldKind.client, CLIENTS),
  ...idsOf(FieldKind.address, ADDRESSES),
  ...idsOf(FieldKind.host, HOSTS),
  ...idsOf(FieldKind.url, URLS),
  ...idsOf(FieldKind.own, OWN),
  ...idsOf(FieldKind.action, ACTIONS),
  ...idsOf(FieldKind.target, TARGETS),
  ...idsOf(FieldKind.account, ACCOUNTS),
  ...idsOf(FieldKind.user, USERS),
  ...idsOf(FieldKind.sent, SENT),
  ...idsOf(FieldKind.received, RECEIVED),
  ...idsOf(FieldKind.kind, KINDS),
  ...idsOf(FieldKind.foreign, FOREIGN),
  ...idsOf(FieldKind.system, SYSTEMS),
  ...idsOf(FieldKind.logger, LOGGERS),
}

export const DATE_FIELD = SYNONYMS['date'] ?? NO_FIELD
export const TIME_FIELD = SYNONYMS['time'] ?? NO_FIELD
/** The envelope of a forwarder has a `host` and a `source` of its own. */
export const HOST_FIELD = SYNONYMS['host'] ?? NO_FIELD
export const SOURCE_FIELD = SYNONYMS['source'] ?? NO_FIELD
export const DOMAIN_FIELD = SYNONYMS['domain'] ?? NO_FIELD
export const WEBSITE_FIELD = SYNONYMS['website'] ?? NO_FIELD
export const METHOD_FIELD = SYNONYMS['method'] ?? NO_FIELD
export const SOURCE_PORT_FIELD = SYNONYMS['sourceport'] ?? NO_FIELD
export const REQUEST_METHOD_FIELD = SYNONYMS['requestmethod'] ?? NO_FIELD
/** A file name or a domain; PAN-OS's `URL/Filename` is the same. */
export const NAME_FIELD = SYNONYMS['name'] ?? NO_FIELD
export const URL_OR_FILE_FIELD = SYNONYMS['urlfilename'] ?? NO_FIELD

/** The ids of words in the order of their ranks; words of one rank have a slash between them. */
export function idsOf(kind: FieldKind, words: string): Record<string, number> {
  const ids: Record<string, number> = {}
  const ranks = words.split(' ')
  assert(ranks.length <= FIELD_RANKS, words)
  for (const [rank, alike] of ranks.entries()) {
    for (const word of alike.split('/')) ids[word] = kind * FIELD_RANKS + rank
  }
  return ids
}

/**
 * As KeyTable, but compares only letters and digits, so `src_ip`, `Src IP` and `source.ip` match.
 */
export class NameTable {
  readonly #words: readonly string[]
  readonly #ids: Int32Array
  readonly #slots: Int32Array
  readonly #mask: number
  readonly #lengthMax: number
  /**
   * 1 for the first, second and last letter of each word: rejects most unknown names before they
   * are hashed.
   */
  readonly #letters = new Uint8Array(1 << 15)

  /** Words of lower-case letters and digits, each with its id. */
  constructor(idOfWord: Readonly<Record<string, number>>) {
    this.#words = Object.keys(idOfWord)
    this.#ids = Int32Array.from(Object.values(idOfWord))
    // As many separators as letters.
    this.#lengthMax = Math.max(...this.#words.map((word) => word.length)) * 2
    let size = 16
    while (size < this.#words.length * 4) size *= 2
    this.#mask = size - 1
    this.#slots = new Int32Array(size).fill(NO_FIELD)
    for (const [index, word] of this.#words.entries()) {
      const second = word.charCodeAt(Math.min(1, word.length - 1))
      this.#letters[lettersOf(word.charCodeAt(0), second, word.charCodeAt(word.length - 1))] = 1
      let hash = SEED
      for (let at = 0; at < word.length; at++) hash = Math.imul(hash ^ word.charCodeAt(at), PRIME)
      let slot = (hash ^ (hash >>> 15)) & this.#mask
      while (this.#slots[slot] !== NO_FIELD) slot = (slot + 1) & this.#mask
      this.#slots[slot] = index
    }
  }

  /** The id of the name in [start, end), or NO_FIELD. */
  find(view: DataView, start: number, end: number): number {
    if (end - start > this.#lengthMax || end <= start) return NO_FIELD
    const first = LETTER[view.getUint8(start)] ?? 0
    const second = LETTER[view.getUint8(end - start > 1 ? start + 1 : start)] ?? 0
    const last = LETTER[view.getUint8(end - 1)] ?? 0
    // With a separator among the three bytes, the name's letters are elsewhere.
    if (first !== 0 && second !== 0 && last !== 0 && this.#letters[lettersOf(first, second, last)] !== 1)
      return NO_FIELD
    const hash = hashOf(view, start, end, SEED)
    let slot = (hash ^ (hash >>> 15)) & this.#mask
    for (;;) {
      const index = this.#slots[slot] ?? NO_FIELD
      if (index === NO_FIELD) return NO_FIELD
      const word = this.#words[index] ?? ''
      if (wordEnd(view, start, end, word, 0) === word.length) return this.#ids[index] ?? NO_FIELD
      slot = (slot + 1) & this.#mask
    }
  }

  /** As find, for the name that consists of `prefix` and the text in [start, end). */
  findAfter(prefix: NamePrefix, view: DataView, start: number, end: number): number {
    if (end <= start || prefix.length + end - start > this.#lengthMax) return NO_FIELD
    const last = LETTER[view.getUint8(end - 1)] ?? 0
    if (last !== 0 && prefix.letters >= 0 && this.#letters[prefix.letters | (last & 31)] !== 1) return NO_FIELD
    const hash = hashOf(view, start, end, prefix.hash)
    let slot = (hash ^ (hash >>> 15)) & this.#mask
    for (;;) {
      const index = this.#slots[slot] ?? NO_FIELD
      if (index === NO_FIELD) return NO_FIELD
      const word = this.#words[index] ?? ''
      const at = wordEnd(prefix.view, 0, prefix.length, word, 0)
      if (at >= 0 && wordEnd(view, start, end, word, at) === word.length) return this.#ids[index] ?? NO_FIELD
      slot = (slot + 1) & this.#mask
    }
  }
}

/** The letters of a name's beginning, hashed once for all names that begin with it. */
export class NamePrefix {
  readonly view: DataView
  length = 0
  hash = SEED
  /** Of the first two letters, for the letters of NameTable; negative for a shorter prefix. */
  letters = -1

  constructor(bytesMax: number) {
    this.view = new DataView(new ArrayBuffer(bytesMax))
  }

  clear(): void {
    this.length = 0
    this.hash = SEED
    this.letters = -1
  }

  /**
   * Sets the prefix to `before` and the text in [start, end). Returns false if both are too long.
   */
  set(before: NamePrefix, view: DataView, start: number, end: number): boolean {
    let length = before.length
    if (end - start > this.view.byteLength - length) return false
    for (let at = 0; at < length; at++) this.view.setUint8(at, before.view.getUint8(at))
    for (let at = start; at < end; at++) {
      const letter = LETTER[view.getUint8(at)] ?? 0
      if (letter !== 0) this.view.setUint8(length++, letter)
    }
    this.length = length
    this.hash = hashOf(view, start, end, before.hash)
    this.letters = length < 2 ? -1 : lettersOf(this.view.getUint8(0), this.view.getUint8(1), 0)
    return true
  }
}

/** For each byte: a letter in lower case, a digit, or 0 for a separator. */
const LETTER = new Uint8Array(256)
for (let byte = 0; byte < 256; byte++) LETTER[byte] = isLetter(byte) ? byte | 0x20 : isDigit(byte) ? byte : 0

/** FNV-1a, 32 bit. */
const SEED = 0x811c9dc5
const PRIME = 0x01000193

/** Five bits of each letter or digit. A collision costs one more hash. */
function lettersOf(first: number, second: number, last: number): number {
  return ((first & 31) << 10) | ((second & 31) << 5) | (last & 31)
}

function hashOf(view: DataView, start: number, end: number, seed: number): number {
  let hash = seed
  for (let at = start; at < end; at++) {
    const letter = LETTER[view.getUint8(at)] ?? 0
    if (letter !== 0) hash = Math.imul(hash ^ letter, PRIME)
  }
  return hash
}

/** The offset in `word` after the letters in [start, end), which begin at `index`, or NO_FIELD. */
function wordEnd(view: DataView, start: number, end: number, word: string, index: number): number {
  for (let at = start; at < end; at++) {
    const letter = LETTER[view.getUint8(at)] ?? 0
    if (letter === 0) continue
    if (index === word.length || letter !== word.charCodeAt(index)) return NO_FIELD
    index++
  }
  return index
}
