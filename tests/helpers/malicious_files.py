"""Files that could crash the process that reads them."""

import base64
import struct

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.parquet import encryption


class Keys(encryption.KmsClient):
    """A key service that stores keys unencrypted."""

    def wrap_key(self, key_bytes, _):
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key, _):
        return base64.b64decode(wrapped_key)


def write_encrypted(sink, made, *, plaintext_footer=True):
    """Write Parquet whose first column is encrypted."""
    configuration = encryption.EncryptionConfiguration(
        "k", column_keys={"k": made.column_names[:1]}, plaintext_footer=plaintext_footer
    )
    factory = encryption.CryptoFactory(lambda _: Keys())
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), configuration)
    with pq.ParquetWriter(sink, made.schema, encryption_properties=properties) as writer:
        writer.write_table(made)


def as_big_endian(stream):
    """Mark the numbers of an Arrow stream as big-endian, in the flatbuffer of its schema."""
    made = bytearray(stream)

    def number(kind, at):
        return struct.unpack_from(kind, made, at)[0]

    message = 8 + number("<I", 8)
    header = message + number("<H", message - number("<i", message) + 4 + 4)
    schema = header + number("<I", header)
    struct.pack_into("<iI", made, schema, -16, number("<I", schema + 4) + 16)
    made[schema + 8 : schema + 8] = struct.pack("<q4H", 1, 8, 16, 8, 4)  # the field, and a table of fields with it
    made[4:8] = (number("<I", 4) + 16).to_bytes(4, "little")
    return bytes(made)


def to_stream(parts):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, parts.schema) as stream:
        stream.write_table(parts)
    return sink.getvalue().to_pybytes()
