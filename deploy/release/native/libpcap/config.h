/*
 * In place of the file that libpcap's configure writes: what glibc has, and none of the optional
 * capture sources (Bluetooth, D-Bus, netfilter, RDMA, USB) with the libraries that they need.
 * libpcap.ts defines PACKAGE_VERSION.
 */
#define HAVE_ASPRINTF 1
#define HAVE_DECL_ETHER_HOSTTON 1
#define HAVE_ETHER_HOSTTON 1
#define HAVE_FSEEKO 1
#define HAVE_GNU_STRERROR_R 1
#define HAVE_LINUX_GETNETBYNAME_R 1
#define HAVE_LINUX_NET_TSTAMP_H 1
#define HAVE_NETPACKET_PACKET_H 1
#define HAVE_SOCKLEN_T 1
#define HAVE_STRTOK_R 1
#define HAVE_STRUCT_ETHER_ADDR 1
#define HAVE_STRUCT_SOCKADDR_STORAGE 1
#define HAVE_VASPRINTF 1
#define HAVE___ATOMIC_LOAD_N 1
#define HAVE___ATOMIC_STORE_N 1
#define INET6 1
#define NETINET_ETHER_H_DECLARES_ETHER_HOSTTON 1
