/* A function in C without a library: checks that a job call is genuine, and keeps its payload once, under the job's id.
 *
 * It serves one connection at a time, which is all that an example needs.
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum { HEAD_MOST = 16 * 1024, BODY_MOST = 1024 * 1024, ID_LENGTH = 36 };

/* -- SHA-256 (FIPS 180-4) and HMAC (RFC 2104) */

struct sha256 {
    uint32_t state[8];
    uint64_t length;
    unsigned char block[64];
};

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t word, int bits) { return (word >> bits) | (word << (32 - bits)); }

static void take_block(struct sha256 *hash) {
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)hash->block[4 * i] << 24 | (uint32_t)hash->block[4 * i + 1] << 16 |
               (uint32_t)hash->block[4 * i + 2] << 8 | hash->block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    memcpy(v, hash->state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25), choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t s0 = turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22), most = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        uint32_t t = v[7] + s1 + choice + K[i] + w[i];
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t;
        v[0] = t + s0 + most;
    }
    for (int i = 0; i < 8; i++) hash->state[i] += v[i];
}

static void sha256_start(struct sha256 *hash) {
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, first, sizeof first);
    hash->length = 0;
}

static void sha256_take(struct sha256 *hash, const void *data, size_t length) {
    for (const unsigned char *byte = data; length--; byte++) {
        hash->block[hash->length++ % 64] = *byte;
        if (hash->length % 64 == 0) take_block(hash);
    }
}

static void sha256_end(struct sha256 *hash, unsigned char digest[32]) {
    uint64_t bits = hash->length * 8;
    sha256_take(hash, "\x80", 1);
    while (hash->length % 64 != 56) sha256_take(hash, "", 1);
    for (int i = 0; i < 8; i++) sha256_take(hash, &(unsigned char){(unsigned char)(bits >> (56 - 8 * i))}, 1);
    for (int i = 0; i < 32; i++) digest[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

static void hmac_sha256(const char *secret, const char *id, const char *body, size_t length, unsigned char digest[32]) {
    unsigned char key[64] = {0}, inner[64], outer[64];
    struct sha256 hash;
    sha256_start(&hash);
    if (strlen(secret) > 64) {
        sha256_take(&hash, secret, strlen(secret));
        sha256_end(&hash, key);
        sha256_start(&hash);
    } else {
        memcpy(key, secret, strlen(secret));
    }
    for (int i = 0; i < 64; i++) inner[i] = key[i] ^ 0x36, outer[i] = key[i] ^ 0x5c;
    sha256_take(&hash, inner, 64);
    sha256_take(&hash, id, strlen(id));
    sha256_take(&hash, ".", 1);
    sha256_take(&hash, body, length);
    sha256_end(&hash, digest);
    sha256_start(&hash);
    sha256_take(&hash, outer, 64);
    sha256_take(&hash, digest, 32);
    sha256_end(&hash, digest);
}

/* -- the job */

static const char *data, *secret;

/* Whether the service signed this call: only it and this function know the secret. */
static int genuine(const char *id, const char *body, size_t length, const char *signature) {
    unsigned char digest[32], difference = 0;
    char right[7 + 64 + 1] = "sha256=";
    hmac_sha256(secret, id, body, length, digest);
    for (int i = 0; i < 32; i++) snprintf(right + 7 + 2 * i, 3, "%02x", digest[i]);
    if (strlen(signature) != strlen(right)) return 0;
    for (size_t i = 0; i < strlen(right); i++) difference |= (unsigned char)(right[i] ^ signature[i]); /* in constant time */
    return difference == 0;
}

/* Keep the payload unless this job has done so: 1 the first time, 0 later, -1 if it cannot be kept.
 *
 * A job may be called twice, since an answer can get lost. The link is made whole or not at all, and only once: a crash
 * of this program before it leaves nothing done, and after it the job is done.
 */
static int keep(const char *id, const char *body, size_t length) {
    char draft[4096], final[4096];
    if (mkdir(data, 0777) != 0 && errno != EEXIST) return -1;
    if (snprintf(draft, sizeof draft, "%s/.XXXXXX", data) >= (int)sizeof draft) return -1;
    if (snprintf(final, sizeof final, "%s/%s.json", data, id) >= (int)sizeof final) return -1;
    int file = mkstemp(draft);
    if (file < 0) return -1;
    int whole = write(file, body, length) == (ssize_t)length && fsync(file) == 0;
    whole = close(file) == 0 && whole;
    int kept = !whole ? -1 : link(draft, final) == 0 ? 1 : errno == EEXIST ? 0 : -1;
    unlink(draft);
    return kept;
}

/* -- HTTP */

static void answer(int connection, const char *status, const char *body) {
    char text[1024];
    int length = snprintf(text, sizeof text, "HTTP/1.1 %s\r\nconnection: close\r\ncontent-length: %zu\r\n\r\n%s", status,
                          strlen(body), body);
    for (int sent = 0; sent < length;) {
        ssize_t wrote = write(connection, text + sent, (size_t)(length - sent));
        if (wrote <= 0) return;
        sent += (int)wrote;
    }
}

/* The id in "/jobs/ID", if that is what the path is: 36 digits, letters from a to f, and dashes. */
static int job_id(const char *path, char id[ID_LENGTH + 1]) {
    if (strncmp(path, "/jobs/", 6) != 0 || strlen(path) != 6 + ID_LENGTH) return 0;
    if (strspn(path + 6, "0123456789abcdef-") != ID_LENGTH) return 0;
    memcpy(id, path + 6, ID_LENGTH + 1);
    return 1;
}

/* Copy the value of a header, or "" where there is none. */
static void header(const char *head, const char *name, char *value, size_t room) {
    value[0] = '\0';
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':') {
            const char *start = line + strlen(name) + 1;
            start += strspn(start, " \t");
            size_t length = strcspn(start, "\r\n");
            if (length < room) memcpy(value, start, length), value[length] = '\0';
            return;
        }
    }
}

static void serve(int connection) {
    static char head[HEAD_MOST + 1], body[BODY_MOST];
    char method[16], path[128], id[ID_LENGTH + 1], signature[128], length_text[32];
    size_t got = 0, in_head = 0;
    char *end = NULL;
    while (end == NULL) {
        ssize_t more = got < HEAD_MOST ? read(connection, head + got, HEAD_MOST - got) : 0;
        if (more <= 0) return; /* gone, too slow, or too long */
        got += (size_t)more;
        head[got] = '\0';
        end = strstr(head, "\r\n\r\n");
    }
    in_head = (size_t)(end - head) + 4;
    *end = '\0';
    if (sscanf(head, "%15s %127s", method, path) != 2) {
        answer(connection, "400 Bad Request", "no request\n");
        return;
    }
    if (strncmp(path, "/jobs/", 6) != 0) {
        answer(connection, "200 OK", "Hello from C\n");
        return;
    }
    if (!job_id(path, id)) {
        answer(connection, "404 Not Found", "{\"error\":\"a job is called at /jobs/ID\"}");
        return;
    }

    header(head, "content-length", length_text, sizeof length_text);
    unsigned long length = strtoul(length_text, NULL, 10);
    if (length_text[0] == '\0') {
        answer(connection, "411 Length Required", "{\"error\":\"no content-length\"}");
        return;
    }
    if (length > BODY_MOST) {
        answer(connection, "413 Content Too Large", "{\"error\":\"more than 1 MiB\"}");
        return;
    }
    size_t have = got - in_head < length ? got - in_head : length;
    memcpy(body, head + in_head, have);
    while (have < length) {
        ssize_t more = read(connection, body + have, length - have);
        if (more <= 0) return;
        have += (size_t)more;
    }

    header(head, "x-treadle-signature", signature, sizeof signature);
    if (!genuine(id, body, length, signature)) {
        answer(connection, "401 Unauthorized", "{\"error\":\"the signature is wrong\"}");
        return;
    }
    int first = keep(id, body, length);
    if (first < 0) {
        perror("the payload cannot be kept");
        answer(connection, "500 Internal Server Error", "{\"error\":\"it went wrong\"}");
        return;
    }
    char told[128];
    snprintf(told, sizeof told, "{\"job\":\"%s\",\"first\":%s}", id, first ? "true" : "false");
    answer(connection, "200 OK", told);
}

int main(void) {
    const char *port = getenv("PORT");
    secret = getenv("TREADLE_FUNCTION_SECRET");
    data = getenv("EXAMPLE_DATA") ? getenv("EXAMPLE_DATA") : "data";
    if (port == NULL || secret == NULL) {
        fprintf(stderr, "PORT and TREADLE_FUNCTION_SECRET must be set: this program is started by treadle\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); /* a caller that went away is no reason to end */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int server = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(server, (struct sockaddr *)&address, sizeof address) != 0 || listen(server, 64) != 0) {
        perror("cannot listen");
        return 1;
    }
    for (;;) {
        int connection = accept(server, NULL, NULL);
        if (connection < 0) continue;
        struct timeval patience = {.tv_sec = 10};
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        serve(connection);
        shutdown(connection, SHUT_WR);
        for (char rest[4096]; read(connection, rest, sizeof rest) > 0;) continue; /* or the answer may be lost with it */
        close(connection);
    }
}
